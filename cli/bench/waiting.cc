#include "bench/waiting.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace heed::cli {

Waiting waiting_so_far() {
  Waiting sum;
  std::error_code error;  // a thread may end while it is being read
  for (std::filesystem::directory_iterator thread("/proc/self/task", error), end;
       !error && thread != end; thread.increment(error)) {
    std::ifstream file(thread->path() / "schedstat");
    double run_nanoseconds = 0;
    double wait_nanoseconds = 0;
    double turns = 0;
    if (!(file >> run_nanoseconds >> wait_nanoseconds >> turns)) continue;
    sum.seconds += 1e-9 * wait_nanoseconds;
    sum.turns += turns;
  }
  return sum;
}

double waited(const Waiting& before, const Waiting& after) {
  constexpr double kSecondsPerTurn = 20e-6;
  const double turns = std::max(0.0, after.turns - before.turns);
  return std::max(0.0, after.seconds - before.seconds - kSecondsPerTurn * turns);
}

}  // namespace heed::cli
