// Ends in the way that its argument names, for endings.py: some ranks throw while others wait for
// them.
#include <chrono>
#include <cstdio>
#include <exception>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "heed/mpi.h"

namespace {

void end(heed::Communicator& ranks, const std::string& how) {
  std::vector<std::byte> room(1 << 20);
  std::vector<std::byte> all(room.size() * static_cast<std::size_t>(ranks.size()));
  const bool is_last = ranks.rank() == ranks.size() - 1;
  if (how == "agreed") {
    heed::run_on_all(ranks, [&] {
      if (is_last) throw std::runtime_error("the disk is full");
    });
  } else if (how == "alone") {
    if (is_last) throw std::runtime_error("the disk is full");
    ranks.gather(room, all);
  } else if (how == "sending") {
    if (is_last) {
      const auto message = ranks.send(room, 0, 0);
      throw std::runtime_error("the disk is full");
    }
    ranks.gather(room, all);
  } else if (how == "killed") {
    if (is_last) std::abort();
    ranks.gather(room, all);
  }
}

// Runs a rank and returns its exit code. The caught exception is printed before the session ends,
// which all ranks do together, because mpirun kills the others once one has failed.
int run(heed::MpiSession& mpi, const std::string& how) {
  try {
    mpi.run([&](heed::Communicator& ranks) { end(ranks, how); });
    return 0;
  } catch (const std::exception& error) {
    std::printf("caught %s\n", error.what());
    std::fflush(stdout);
    return 3;
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  try {
    heed::MpiSession mpi;
    if (how == "outside") {
      int rank = 0;
      MPI_Comm_rank(MPI_COMM_WORLD, &rank);
      if (rank == 1) throw std::runtime_error("the disk is full");
    }
    return run(mpi, how);
  } catch (const std::exception& error) {
    std::printf("caught %s\n", error.what());
    return 3;
  }
}
