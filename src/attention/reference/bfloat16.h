// Conversion of bfloat16 tensors for the plain loops.
#pragma once

#include "attention/request/request.h"
#include "heed/core/convert.h"
#include "heed/core/half.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace reference {

// The tensors of a problem as floats.
struct Floats {
  Tensor<float> query;
  Tensor<float> key;
  Tensor<float> value;

  Floats(const char* function, BFloat16View q, BFloat16View k, BFloat16View v) {
    check_shapes(function, q, k, v);
    query = converted<float>(q);
    key = converted<float>(k);
    value = converted<float>(v);
  }

  Problem<float> problem(const char* function, const AttentionOptions& options) const {
    auto problem = check_attention<float>(function, query, key, value, options);
    problem.rounds_factors = options.precision == Precision::kFast;
    return problem;
  }
};

}}}  // namespace heed::v0::reference
