// Runs a plan on checked tensors, for calls that make a plan each time and for kept plans.
#pragma once

#include <span>
#include <type_traits>

#include "attention/plan/plan.h"
#include "attention/request/gradient_tensors.h"

namespace heed { inline namespace v0 {

// The output of the forward pass for the backward pass. Half precision rounds it, and with a
// rounded output Σ grad_out · out would cost the gradients most of their digits. It is therefore
// read together with its rounding error, or, where that is not given, computed again.
template <class T>
class OutputOfForward {
 public:
  using Real = Computed<T>;

  OutputOfForward(const Call<Real>& call, const AttentionOutputView<T, Real>& forward)
      : rows_(rows_of(forward.out)) {
    if (std::is_same_v<T, Real>) return;
    if (reads_out_low<T>(*call.request) && !forward.out_low.empty()) {
      low_ = rows_of(forward.out_low);
    } else {
      again_ = Tensor<Real>::uninitialized(forward.out.shape());
      rows_ = rows_of(TensorView<const Real>(again_));
      const ForwardCall<Real> again{call, rows_of(again_.view()), {}};
      prepare(*call.request, Pass::kForward)->forward({&again, 1});
    }
  }

  const Rows& rows() const { return rows_; }
  const Rows& low() const { return low_; }

 private:
  Tensor<Real> again_;
  Rows rows_;
  Rows low_;
};

// The tensors of a backward pass.
template <class T>
struct BackwardTensors {
  TensorView<const T> grad_out;
  TensorView<const T> query;
  TensorView<const T> key;
  TensorView<const T> value;
  AttentionOutputView<T, Computed<T>> forward;
};

// Checks the tensors of the output; the others must have been checked for the request. The request
// is prepared for Pass::kBackward, and `workspace` has the memory that it needs or is empty.
template <class T>
AttentionGradients<T, Computed<T>> run_backward(const char* function,
                                                const Request<Computed<T>>& request,
                                                const Prepared<Computed<T>>& prepared,
                                                const BackwardTensors<T>& in,
                                                std::span<std::byte> workspace) {
  using Real = Computed<T>;
  const AttentionShapes& shapes = request.shape;
  const Shape out{shapes.batch, shapes.num_heads, shapes.q_len, shapes.value_dim};
  check_tensor(function, "grad_out", in.grad_out, out);
  check_tensor(function, "forward.out", in.forward.out, out);
  check_tensor(function, "forward.lse", in.forward.lse,
               {shapes.batch, shapes.num_heads, shapes.q_len});
  if (!in.forward.lse_low.empty()) {
    check_tensor(function, "forward.lse_low", in.forward.lse_low, in.forward.lse.shape());
  }
  if (!in.forward.out_low.empty()) {
    check_tensor(function, "forward.out_low", in.forward.out_low, out);
  }
  if (!in.forward.kept.empty()) {
    check_kept(function, "forward.kept", in.forward.kept, prepared.kept_size(request));
  }
  GradientTensors<T> gradients(request, in.query.shape(), in.key.shape(), in.value.shape());
  const Call<Real> inputs = call_of(request, in.query, in.key, in.value);
  const OutputOfForward<T> made(inputs, in.forward);
  const BackwardCall<Real> call{inputs,         rows_of(in.grad_out),         made.rows(),
                                in.forward.lse, gradients.targets(),          in.forward.lse_low,
                                made.low(),     data_or_null(in.forward.kept)};
  prepared.backward({&call, 1}, workspace);
  return std::move(gradients).take();
}

}}  // namespace heed::v0
