// The problems for all peers: attention of one batch entry, with as many keys as queries, or its
// gradients; or attention of a single query.
#pragma once

#include <cstdint>

extern "C" {

// query, key, value and out are [num_heads, length, dim], contiguous.
struct PeersProblem {
  std::int64_t num_heads;
  std::int64_t length;
  std::int64_t dim;
  const char* mask;  // in the notation of heed::parse_mask
  const float* query;
  const float* key;
  const float* value;
  float* out;  // null if only the time is wanted
  // Only for gradients: the given gradient of out, and the results [3][num_heads][length][dim] for
  // query, key and value, null if only the time is wanted.
  const float* grad_out;
  float* gradients;
};

// One query of each head over stored keys and values.
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
