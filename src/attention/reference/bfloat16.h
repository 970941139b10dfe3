// Tensors of bfloat16 for plain loops.
#pragma once

#include <cstdint>

#include "attention/request.h"
#include "heed/half.h"
#include "heed/tensor.h"

namespace heed::inline v0::reference {

// The numbers of a tensor of rank 4.
inline Tensor<float> as_floats(BFloat16View view) {
  Tensor<float> floats(view.shape());
  float* to = floats.data();
  for (std::int64_t b = 0; b < view.extent(0); ++b)
    for (std::int64_t h = 0; h < view.extent(1); ++h)
      for (std::int64_t i = 0; i < view.extent(2); ++i)
        for (std::int64_t d = 0; d < view.extent(3); ++d) *to++ = view(b, h, i, d);
  return floats;
}

// The tensors of a problem as floats.
struct Floats {
  Tensor<float> query;
  Tensor<float> key;
  Tensor<float> value;

  Floats(const char* function, BFloat16View q, BFloat16View k, BFloat16View v) {
    check_shapes(function, q, k, v);
    query = as_floats(q);
    key = as_floats(k);
    value = as_floats(v);
  }

  Problem<float> problem(const char* function, const AttentionOptions& options) const {
    auto problem = check_attention<float>(function, query, key, value, options);
    problem.rounds_factors = options.precision == Precision::kFast;
    return problem;
  }
};

}  // namespace heed::inline v0::reference
