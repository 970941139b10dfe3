// The kernels of linear attention: their arguments, and their table.
#pragma once

#include <cstdint>

#include "heed/attention/linear_attention.h"

namespace heed { inline namespace v0 { namespace kernels {

// The largest number of vectors of columns of the state that one call computes.
inline constexpr std::int32_t kStateVectors = 4;

// Some tokens of one key head of one batch entry, and some columns of its state, [head_dim][vectors
// · lanes]. Rows are contiguous floats; strides are from one token to the next.
struct Recurrence {
  std::int64_t length = 0;
  std::int32_t head_dim = 0;
  // The number of columns of value, out and state, at most vectors · lanes.
  std::int32_t columns = 0;
  const float* key = nullptr;  // null if tokens only read
  std::int64_t key_stride = 0;
  const float* value = nullptr;
  std::int64_t value_stride = 0;
  const float* decay = nullptr;  // logarithms; null if the state does not decay
  std::int64_t decay_stride = 0;
  bool decay_is_scalar = false;  // one number for all of head_dim
  const float* beta = nullptr;   // null without the delta rule
  std::int64_t beta_stride = 0;
  // The outputs of a token, scale · Sᵀq for each of num_heads queries.
  std::int32_t num_heads = 0;
  float scale = 1;
  const float* query = nullptr;
  std::int64_t query_stride = 0;
  std::int64_t query_head_stride = 0;
  float* out = nullptr;
  std::int64_t out_stride = 0;
  std::int64_t out_head_stride = 0;
  float* state = nullptr;  // aligned to a vector
  float* gates = nullptr;  // scratch, head_dim floats rounded up to whole vectors
};

struct RecurrenceTable {
  // The arithmetic of a column is the same in any number of vectors: 1, 2 or kStateVectors.
  void (*run)(std::int32_t vectors, const Recurrence& recurrence);

  // features[i] = φ(numbers[i])
  void (*features)(FeatureMap map, const float* numbers, std::int64_t count, float* features);
};

}}}  // namespace heed::v0::kernels
