// The part of all scores that one rank computes.
#pragma once

#include <algorithm>

#include "attention/request/request.h"
#include "heed/distributed/attention.h"

namespace heed { inline namespace v0 { namespace distributed {

// All heads, for the queries of a rank's tokens.
inline ScorePart own_queries(const AttentionShapes& shapes, int rank, int size) {
  return {.num_queries = TokenDivision(shapes.q_len, size).num_tokens(rank),
          .stretch = TokenDivision::kSegment,
          .step = size * TokenDivision::kSegment,
          .first = rank * TokenDivision::kSegment,
          .odd_first = (size - 1 - rank) * TokenDivision::kSegment,
          .first_head = 0,
          .num_heads = shapes.num_heads,
          .keys = {0, shapes.kv_len}};
}

// A rank's heads, for all queries. The heads divide evenly.
inline ScorePart own_heads(const AttentionShapes& shapes, int rank, int size) {
  return {.num_queries = shapes.q_len,
          .stretch = std::max<std::int64_t>(shapes.q_len, 1),
          .step = 0,
          .first = 0,
          .odd_first = 0,
          .first_head = rank * (shapes.num_heads / size),
          .num_heads = shapes.num_heads / size,
          .keys = {0, shapes.kv_len}};
}

}}}  // namespace heed::v0::distributed
