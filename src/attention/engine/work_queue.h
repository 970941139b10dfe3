// The distribution of work among threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "heed/core/parallel.h"

namespace heed { inline namespace v0 { namespace engine {

// Calls compute(worker, item) for the items 0 to count − 1, in this order, each on whichever of
// `workers` threads is free; worker = start(number of the worker). Longer items must come first, so
// that no thread works alone on a long one at the end.
template <class Start, class Compute>
void deal_out(std::int64_t count, std::int64_t workers, const Start& start,
              const Compute& compute) {
  if (std::min(workers, count) == 1) {
    auto worker = start(0);
    for (std::int64_t item = 0; item < count; ++item) compute(worker, item);
    return;
  }
  std::atomic<std::int64_t> next = 0;
  parallel_for(0, std::min(workers, count), 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t w = first; w < last; ++w) {
      auto worker = start(w);
      for (std::int64_t item = next++; item < count; item = next++) compute(worker, item);
    }
  });
}

}}}  // namespace heed::v0::engine
