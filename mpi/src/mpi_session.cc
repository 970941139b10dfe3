#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <exception>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "heed/mpi.h"
#include "mpi_call.h"

namespace heed { inline namespace v0 {

namespace {

using std::chrono::steady_clock;

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// A communicator for the length of a block, which no exception leaves.
class OwnComm {
 public:
  OwnComm() {
    check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  ~OwnComm() { MPI_Comm_free(&comm_); }
  OwnComm(const OwnComm&) = delete;
  OwnComm& operator=(const OwnComm&) = delete;
  MPI_Comm get() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

// The outcome of this rank's part.
struct Ending {
  std::exception_ptr exception;
  std::string text;
};

Ending call(const std::function<void(Communicator&)>& body, Communicator& ranks) {
  try {
    body(ranks);
    return {};
  } catch (const std::exception& error) {
    return {std::current_exception(), error.what()};
  } catch (...) {
    return {std::current_exception(), "an exception that is no std::exception"};
  }
}

// Returns 1 for each rank that failed. A rank that failed waits at most `patience_seconds` for the
// others to end.
std::vector<int> gather_endings(MPI_Comm comm, const Ending& mine, double patience_seconds) {
  int size = 1;
  check_mpi(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  std::vector<int> has_failed(static_cast<std::size_t>(size));
  const int failed = mine.exception ? 1 : 0;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Iallgather(&failed, 1, MPI_INT, has_failed.data(), 1, MPI_INT, comm, &request),
            "MPI_Iallgather");
  if (failed == 0) {
    check_mpi(MPI_Wait(&request, MPI_STATUS_IGNORE), "MPI_Wait");
    return has_failed;
  }
  const auto end = steady_clock::now() + std::chrono::duration<double>(patience_seconds);
  for (int is_done = 0;;) {
    check_mpi(MPI_Test(&request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    if (is_done != 0) return has_failed;
    if (steady_clock::now() > end) {
      abort_mpi(MPI_COMM_WORLD, fmt::format("rank {} failed: {}", world_rank(), mine.text));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

// Sends the text of rank `from` to all ranks.
std::string tell_all(MPI_Comm comm, int from, const std::string& text) {
  std::array<char, 4096> room = {};
  std::copy_n(text.data(), std::min(text.size(), room.size() - 1), room.data());
  check_mpi(MPI_Bcast(room.data(), static_cast<int>(room.size()), MPI_CHAR, from, comm),
            "MPI_Bcast");
  return room.data();
}

}  // namespace

MpiSession::MpiSession() {
  int is_initialized = 0;
  MPI_Initialized(&is_initialized);
  int level = MPI_THREAD_SINGLE;
  if (is_initialized == 0) {
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
    owns_ = true;
  } else {
    check_mpi(MPI_Query_thread(&level), "MPI_Query_thread");
  }
  if (level < MPI_THREAD_SERIALIZED) {
    if (owns_) MPI_Finalize();
    throw CommunicationError(
        "MpiSession: MPI was started, or built, without MPI_THREAD_SERIALIZED");
  }
}

MpiSession::~MpiSession() {
  if (!owns_) return;
  if (std::uncaught_exceptions() > 0 && !all_know_) {
    abort_mpi(MPI_COMM_WORLD,
              fmt::format("rank {}: an exception left the session of MPI", world_rank()));
  }
  MPI_Finalize();
}

void MpiSession::run(const std::function<void(Communicator&)>& body, double patience_seconds) {
  all_know_ = false;
  const OwnComm comm;
  MpiCommunicator ranks(MPI_COMM_WORLD);
  const Ending mine = call(body, ranks);
  const std::vector<int> has_failed = gather_endings(comm.get(), mine, patience_seconds);
  const auto first = std::find(has_failed.begin(), has_failed.end(), 1);
  if (first == has_failed.end()) return;
  const auto rank = static_cast<int>(first - has_failed.begin());
  const std::string text = tell_all(comm.get(), rank, mine.text);
  all_know_ = true;
  if (mine.exception) std::rethrow_exception(mine.exception);
  throw CommunicationError(fmt::format("rank {} failed: {}", rank, text));
}

int MpiSession::num_threads() const {
  MPI_Comm machine = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine),
            "MPI_Comm_split_type");
  int size = 1;
  check_mpi(MPI_Comm_size(machine, &size), "MPI_Comm_size");
  cpu_set_t mine;
  CPU_ZERO(&mine);
  ::sched_getaffinity(0, sizeof mine, &mine);
  std::vector<cpu_set_t> all(static_cast<std::size_t>(size));
  check_mpi(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all.data(), sizeof mine, MPI_BYTE, machine),
            "MPI_Allgather");
  MPI_Comm_free(&machine);
  const auto num_sharing = std::count_if(all.begin(), all.end(), [&](const cpu_set_t& other) {
    cpu_set_t both;
    CPU_AND(&both, &mine, &other);
    return CPU_COUNT(&both) > 0;
  });
  const auto sharing = std::max(static_cast<int>(num_sharing), 1);
  return std::max(CPU_COUNT(&mine) / sharing, 1);
}

}}  // namespace heed::v0
