// Random operands of attention in any type and layout, and the attention call.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "bench/case_options.h"
#include "bench/forward_case.h"
#include "heed/attention.h"
#include "heed/attention/plan.h"
#include "heed/attention/reference.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"

namespace heed::cli {

// Standard normal numbers [batch, heads, length, dim], contiguous or as a view of memory laid out
// [batch, length, heads, dim].
template <class T>
class Operand {
 public:
  Operand(TorchGenerator& random, const std::string& layout, const Shape& shape)
      : is_permuted_(layout == "bthd") {
    const Shape stored =
        is_permuted_ ? Shape{shape[0], shape[2], shape[1], shape[3]} : Shape(shape);
    using Drawn = std::conditional_t<std::is_same_v<T, double>, double, float>;
    const Tensor<Drawn> numbers = random.randn<Drawn>(stored);
    memory_ = Tensor<T>::uninitialized(stored);
    std::transform(numbers.elements().begin(), numbers.elements().end(), memory_.elements().begin(),
                   [](Drawn number) { return static_cast<T>(number); });
  }

  TensorView<const T> view() const {
    const TensorView<const T> stored = memory_;
    return is_permuted_ ? stored.permute({0, 2, 1, 3}) : stored;
  }

 private:
  bool is_permuted_;
  Tensor<T> memory_;
};

template <class T>
class Operands {
 public:
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;

  explicit Operands(const ForwardCase& forward, TorchGenerator random = TorchGenerator(0))
      : query_(random, forward.layout,
               {forward.batch, forward.num_heads, forward.q_len, forward.head_dim}),
        key_(random, forward.layout,
             {forward.batch, forward.num_kv_heads, forward.kv_len, forward.head_dim}),
        value_(random, forward.layout,
               {forward.batch, forward.num_kv_heads, forward.kv_len, forward.value_dim}),
        options_(forward, random) {}

  TensorView<const T> query() const { return query_.view(); }
  TensorView<const T> key() const { return key_.view(); }
  TensorView<const T> value() const { return value_.view(); }

  // Writes into memory that exists already, as in a loop over layers: with new memory, the system's
  // page faults would be measured.
  TensorView<const T> attend() {
    if (!plan_) {
      const TensorView<const T> q = query_.view(), k = key_.view(), v = value_.view();
      out_ = Tensor<T>({q.extent(0), q.extent(1), q.extent(2), v.extent(3)});
      plan_ = plan({.batch = q.extent(0),
                    .num_heads = q.extent(1),
                    .num_kv_heads = k.extent(1),
                    .q_len = q.extent(2),
                    .kv_len = k.extent(2),
                    .head_dim = q.extent(3),
                    .value_dim = v.extent(3),
                    .dtype = data_type_of<T>(),
                    .key_stride = k.stride(2),
                    .value_stride = v.stride(2)},
                   *options_);
    }
    plan_->run_into({.out = out_}, query_.view(), key_.view(), value_.view());
    return out_;
  }
  reference::Result<T> attend_by_reference(reference::Keep keep) const {
    return reference::attention(query_.view(), key_.view(), value_.view(), *options_, keep);
  }

 private:
  Operand<T> query_;
  Operand<T> key_;
  Operand<T> value_;
  CaseOptions<Real> options_;
  std::optional<AttentionPlan> plan_;
  Tensor<T> out_;
};

}  // namespace heed::cli
