// The choice of dividing a call's work by tokens or by heads: the ranks that read each segment of
// keys, the bytes that are sent, and the part of all scores that one rank computes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attention/request/request.h"
#include "heed/attention/plan.h"
#include "heed/core/config.h"
#include "heed/core/shape.h"
#include "heed/distributed/attention.h"

namespace heed { inline namespace v0 { namespace distributed {

// For each rank, the segments with some key that it sees. Equal on every rank.
class Readers {
 public:
  Readers(std::int64_t num_segments, std::vector<std::uint8_t> reads)
      : num_segments_(num_segments), reads_(std::move(reads)) {}

  bool reads(int rank, std::int64_t segment) const {
    return reads_[static_cast<std::size_t>(rank * num_segments_ + segment)] != 0;
  }

 private:
  std::int64_t num_segments_;
  std::vector<std::uint8_t> reads_;  // [ranks][segments]
};

// The bytes of a token's key and of its value, over the key heads of all batch entries.
struct TokenBytes {
  std::int64_t batch;
  std::int64_t heads;
  std::int64_t key;
  std::int64_t value;

  static TokenBytes of(const AttentionShapes& shapes) {
    return {shapes.batch, shapes.num_kv_heads, shapes.head_dim * size_of(shapes.type_of_keys()),
            shapes.value_dim * size_of(shapes.type_of_values())};
  }
  std::int64_t of_tokens(std::int64_t count) const {
    return checked_multiply(checked_multiply(checked_multiply(batch, heads), count), key + value);
  }
};

struct Choice {
  DividedBy by;  // kTokens or kHeads
  std::string reason;
};

// Bytes that each rank receives from others in a forward pass. The shapes are those of all tokens.
std::vector<std::int64_t> bytes_by_tokens(const AttentionShapes& shapes, int size,
                                          const Readers& readers);
std::vector<std::int64_t> bytes_by_heads(const AttentionShapes& shapes, int size);

// Throws InvalidArgument, with `function` in front, if division by heads is wanted but the heads do
// not divide.
Choice choose_division(const char* function, const AttentionShapes& shapes, int size,
                       const Readers& readers, DividedBy wanted);

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
