// The part of a problem that one of several ranks computes.
#pragma once

#include <cstdint>

#include "heed/attention/mask.h"

namespace heed { inline namespace v0 {

// Some of the queries, heads and keys of a problem. Masks, terms, sinks and dropout use their
// places in the whole problem. The tensors have the heads of the part alone, and those of queries
// only its queries, in order.
struct ScorePart {
  std::int64_t num_queries = 0;
  // Queries come in ranges of `stretch` queries each, except that the last may be shorter. Range i
  // begins at query i · step + first, or for odd i at i · step + odd_first.
  std::int64_t stretch = 1;
  std::int64_t step = 1;
  std::int64_t first = 0;
  std::int64_t odd_first = 0;
  // Consecutive heads, with all heads that share their key heads.
  std::int64_t first_head = 0;
  std::int64_t num_heads = 0;
  // The keys of the part. They begin at a multiple of kernels::kChunkKeys, or, if there are none,
  // at the end of all keys.
  RowRange keys;

  // The place of query i of the part in the whole problem.
  std::int64_t query(std::int64_t i) const {
    const std::int64_t number = i / stretch;
    return number * step + (number % 2 == 0 ? first : odd_first) + i % stretch;
  }
};

}}  // namespace heed::v0
