// What one of several ranks computes of a problem.
#pragma once

#include <cstdint>

#include "heed/attention/mask.h"

namespace heed { inline namespace v0 {

// Some queries, heads and keys of all scores. Masks, terms, sinks and dropout are asked about the
// places that these have among all; tensors have the heads of the part alone, and those of queries
// its queries alone, one behind the other.
struct ScorePart {
  std::int64_t num_queries = 0;
  // Stretches of so many queries, the last one may be shorter. Query 0 of stretch i stands at
  // i · step + first, for odd i at i · step + odd_first.
  std::int64_t stretch = 1;
  std::int64_t step = 1;
  std::int64_t first = 0;
  std::int64_t odd_first = 0;
  // Heads one behind the other, all that share their key heads among them.
  std::int64_t first_head = 0;
  std::int64_t num_heads = 0;
  // They begin with a chunk of keys, or where there are none left.
  RowRange keys;

  // The place of query i of the part.
  std::int64_t query(std::int64_t i) const {
    const std::int64_t number = i / stretch;
    return number * step + (number % 2 == 0 ? first : odd_first) + i % stretch;
  }
};

}}  // namespace heed::v0
