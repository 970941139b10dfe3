// The only file of the command that uses MPI; it compiles with and without it.
#include <algorithm>
#include <iostream>
#include <memory>
#include <span>
#include <streambuf>
#include <vector>

#include "heed/core/parallel.h"
#include "ranks.h"

#ifdef HEED_WITH_MPI
#include "heed/mpi.h"
#endif

namespace heed::cli {

#ifdef HEED_WITH_MPI

namespace {

// Discards all output.
class Nowhere final : public std::streambuf {
 protected:
  int overflow(int character) override { return traits_type::not_eof(character); }
  std::streamsize xsputn(const char*, std::streamsize count) override { return count; }
};

// While an object exists, discards standard output and error if `is_silent`.
class Silence {
 public:
  explicit Silence(bool is_silent)
      : out_(is_silent ? std::cout.rdbuf(&nowhere_) : nullptr),
        err_(is_silent ? std::cerr.rdbuf(&nowhere_) : nullptr) {}
  ~Silence() {
    if (out_ != nullptr) std::cout.rdbuf(out_);
    if (err_ != nullptr) std::cerr.rdbuf(err_);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  Nowhere nowhere_;
  std::streambuf* out_;
  std::streambuf* err_;
};

class RanksScope {
 public:
  explicit RanksScope(Communicator& ranks) { detail::set_ranks(&ranks); }
  ~RanksScope() { detail::set_ranks(nullptr); }
  RanksScope(const RanksScope&) = delete;
  RanksScope& operator=(const RanksScope&) = delete;
};

}  // namespace

int run_divided(const std::function<int(const DivideWork&)>& command) {
  MpiSession mpi;
  MpiCommunicator world(MPI_COMM_WORLD);
  // A single process that mpirun started needs no division.
  const bool is_alone = world.size() == 1;
  set_num_threads(mpi.num_threads());
  const Silence silence(world.rank() != 0);
  const int code = command([&](const std::function<void()>& work) {
    if (is_alone) return work();
    mpi.run([&](Communicator& ranks) {
      const RanksScope scope(ranks);
      work();
    });
  });
  std::cout.flush();
  std::cerr.flush();
  // No rank leaves before all have printed: mpirun ends the others when one fails.
  std::vector<int> codes(static_cast<std::size_t>(world.size()));
  world.gather(std::as_bytes(std::span(&code, 1)), std::as_writable_bytes(std::span(codes)));
  return *std::max_element(codes.begin(), codes.end());
}

#else

int run_divided(const std::function<int(const DivideWork&)>&) {
  throw CommunicationError(
      "several processes of heed were started together, as mpirun does, but this heed was built "
      "without MPI (HEED_BUILD_MPI)");
}

#endif

}  // namespace heed::cli
