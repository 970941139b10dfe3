#include "attention/reference/softmax.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <optional>

#include "core/float_environment.h"
#include "heed/attention/reference.h"
#include "heed/core/elementary.h"

namespace heed { inline namespace v0 { namespace reference {

namespace {

// Calls row(input row, output row) for every row along the last dimension and returns the outputs.
template <class Real, class RowFunction>
Tensor<Real> map_rows(const char* function, TensorView<const Real> input, RowFunction row) {
  const FloatEnvironment environment;
  if (input.rank() == 0) {
    throw InvalidArgument(
        fmt::format("{}: the input is a scalar, expected at least 1 dimension", function));
  }
  const Tensor<Real> rows = to_tensor(input);
  Tensor<Real> result(input.shape());
  const auto length = static_cast<std::size_t>(input.extent(-1));
  for (std::size_t begin = 0; begin < rows.elements().size(); begin += length) {
    row(rows.elements().subspan(begin, length), result.elements().subspan(begin, length));
  }
  return result;
}

template <class Real>
Tensor<Real> stable(TensorView<const Real> scores) {
  return map_rows<Real>("softmax", scores, [](std::span<const Real> in, std::span<Real> out) {
    softmax_row<Real>(in, std::nullopt, out);
  });
}

template <class Real>
Tensor<Real> naive(TensorView<const Real> scores) {
  return map_rows<Real>("naive_softmax", scores, [](std::span<const Real> in, std::span<Real> out) {
    Real sum = 0;
    for (std::size_t i = 0; i < in.size(); ++i) sum += out[i] = elementary::exp(in[i]);
    for (Real& weight : out) weight /= sum;
  });
}

template <class Real>
Tensor<Real> backward(TensorView<const Real> grad_weights, TensorView<const Real> weights) {
  if (grad_weights.shape() != weights.shape()) {
    throw InvalidArgument(fmt::format("softmax_backward: grad_weights has shape {} but weights {}",
                                      to_string(grad_weights.shape()), to_string(weights.shape())));
  }
  const Tensor<Real> all_weights = to_tensor(weights);
  std::size_t begin = 0;
  return map_rows<Real>(
      "softmax_backward", grad_weights, [&](std::span<const Real> in, std::span<Real> out) {
        softmax_backward_row<Real>(in, all_weights.elements().subspan(begin, in.size()), out);
        begin += in.size();
      });
}

}  // namespace

Tensor<float> softmax(FloatView scores) { return stable(scores); }
Tensor<double> softmax(DoubleView scores) { return stable(scores); }
Tensor<float> naive_softmax(FloatView scores) { return naive(scores); }
Tensor<double> naive_softmax(DoubleView scores) { return naive(scores); }
Tensor<float> softmax_backward(FloatView grad_weights, FloatView weights) {
  return backward(grad_weights, weights);
}
Tensor<double> softmax_backward(DoubleView grad_weights, DoubleView weights) {
  return backward(grad_weights, weights);
}

}}}  // namespace heed::v0::reference
