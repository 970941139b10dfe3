// The queries of one rank as a part of all scores.
#pragma once

#include "attention/score_part.h"
#include "heed/distributed.h"

namespace heed::inline v0::distributed {

inline ScorePart own_queries(const TokenDivision& queries, const TokenDivision& keys, int rank,
                             int size) {
  return {.num_queries = queries.num_tokens(rank),
          .stretch = TokenDivision::kSegment,
          .step = size * TokenDivision::kSegment,
          .first = rank * TokenDivision::kSegment,
          .odd_first = (size - 1 - rank) * TokenDivision::kSegment,
          .keys = {0, keys.length()}};
}

}  // namespace heed::inline v0::distributed
