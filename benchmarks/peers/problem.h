// What every peer is asked: attention of one batch entry, as many keys as queries, or its
// gradients; or attention of a single query.
#pragma once

#include <cstdint>

extern "C" {

// query, key, value and out are [num_heads, length, dim], contiguous.
struct PeersProblem {
  std::int64_t num_heads;
  std::int64_t length;
  std::int64_t dim;
  const char* mask;  // in words that heed::parse_mask reads
  const float* query;
  const float* key;
  const float* value;
  float* out;  // null: the result is not wanted, only the time it takes
  // Of the gradients only: that of out, which is given, and [3][num_heads][length][dim], those of
  // query, key and value; null: only the time is wanted.
  const float* grad_out;
  float* gradients;
};

// One query of each head over keys and values that were stored before.
struct PeersDecode {
  std::int64_t num_heads;
  std::int64_t num_kv_heads;
  std::int64_t kv_len;
  std::int64_t dim;
  const float* query;  // [num_heads, dim]
  const float* key;    // [num_kv_heads, kv_len, dim], as is value
  const float* value;
  float* out;  // [num_heads, dim]
};
}
