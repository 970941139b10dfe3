// Sums of the plain loops, and bfloat16 tensors as floats.
#pragma once

#include <cmath>
#include <cstdint>

#include "attention/request/request.h"
#include "heed/core/convert.h"
#include "heed/core/data_type.h"
#include "heed/core/elementary.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

// Σ a[i] · b[i]
template <class Real>
Real dot(const Real* a, const Real* b, std::int64_t length) {
  Real sum = 0;
  for (std::int64_t i = 0; i < length; ++i) sum += a[i] * b[i];
  return sum;
}

}}  // namespace heed::v0

namespace heed { inline namespace v0 { namespace reference {

// w ln w, which is 0 for w = 0 and NaN for NaN. The entropy is −Σ w ln w.
template <class Real>
Real weight_times_log(Real weight) {
  return weight == 0 ? Real{0} : weight * elementary::log(weight);
}

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
