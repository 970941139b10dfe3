// What `heed bench distributed` measures: ranks beside one process.
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
  std::optional<double> one_process_seconds;  // the median; none where it was not measured
  double waiting_share = 0;                   // of the time of all ranks, in messages

  nlohmann::ordered_json row(const DividedCase& one) const;
};

// Ranks that are threads of this process, so many of them, all measured in turn with one process
// that has all `threads`.
std::vector<MeasuredRanks> measure_thread_ranks(const DividedCase& one,
                                                const std::vector<std::int64_t>& sizes, int threads,
                                                int repetitions, Progress& progress);

// The ranks there are, each with so many threads. The first one measures one process with the
// threads of all in turn, if it runs on as many processors; the others sleep meanwhile. All ranks
// call it; what the first one returns counts.
MeasuredRanks measure_ranks_there_are(Communicator& ranks, const DividedCase& one, int threads,
                                      int repetitions, Progress& progress);

}  // namespace heed::cli
