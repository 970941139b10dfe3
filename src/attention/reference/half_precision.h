// Tensors of half precision for plain loops.
#pragma once

#include <type_traits>

#include "attention/request.h"
#include "heed/convert.h"
#include "heed/half.h"
#include "heed/tensor.h"

namespace heed::inline v0::reference {

// The tensors of a problem as floats.
template <class Half>
struct Floats {
  Tensor<float> query;
  Tensor<float> key;
  Tensor<float> value;

  Floats(const char* function, TensorView<const Half> q, TensorView<const Half> k,
         TensorView<const Half> v) {
    check_shapes(function, q, k, v);
    query = converted<float>(q);
    key = converted<float>(k);
    value = converted<float>(v);
  }

  Problem<float> problem(const char* function, const AttentionOptions& options) const {
    auto problem = check_attention<float>(function, query, key, value, options);
    if (options.precision == Precision::kExact) return problem;
    problem.out_type = data_type_of<Half>();
    if (std::is_same_v<Half, BFloat16>) problem.factor_type = DataType::kBFloat16;
    return problem;
  }
};

}  // namespace heed::inline v0::reference
