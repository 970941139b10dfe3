// The measurements of `heed bench distributed`: ranks compared to one process.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "bench/divided_pass.h"
#include "bench/progress.h"
#include "bench/statistics.h"
#include "heed/distributed/communicator.h"

namespace heed::cli {

struct MeasuredRanks {
  int size = 1;
  int threads = 1;  // of the first rank
  Timing timing;
  std::optional<double> one_process_seconds;  // the median; empty where it was not measured
  double waiting_share = 0;                   // the part of all ranks' time spent in messages

  nlohmann::ordered_json row(const DividedCase& one) const;
};

// Measures, for each of `sizes`, that many ranks as threads of this process, in turn with one
// process that uses all `threads`.
std::vector<MeasuredRanks> measure_thread_ranks(const DividedCase& one,
                                                const std::vector<std::int64_t>& sizes, int threads,
                                                int repetitions, Progress& progress);

// Measures the ranks that mpirun started, with `threads` each. The first rank also measures, in
// turn, one process with the threads of all ranks if it may run on as many processors; the others
// sleep meanwhile. All ranks must call it; only the first rank's result is meaningful.
MeasuredRanks measure_ranks_there_are(Communicator& ranks, const DividedCase& one, int threads,
                                      int repetitions, Progress& progress);

}  // namespace heed::cli
