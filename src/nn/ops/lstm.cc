#include "heed/nn/lstm.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/float_environment.h"
#include "heed/nn/tape.h"
#include "nn/blas.h"
#include "nn/divided_tokens.h"
#include "nn/ops/lstm_scan.h"
#include "nn/ops/on_tensors.h"
#include "nn/ops/shapes.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

template <class T>
void check_shape(const char* name, const Variable<T>& variable, const Shape& expected) {
  if (variable.shape() == expected) return;
  throw InvalidArgument(fmt::format("lstm: {} has shape {}, expected {}", name,
                                    to_string(variable.shape()), to_string(expected)));
}

template <class T>
void check_parameters(const Variable<T>& x, const LstmParameters<T>& parameters) {
  if (x.rank() != 3) {
    throw InvalidArgument(fmt::format("lstm: x has shape {}, expected [batch, length, input_size]",
                                      to_string(x.shape())));
  }
  const Shape& recurrent = parameters.weight_hh.shape();
  if (recurrent.rank() != 2 || recurrent[0] != 4 * recurrent[1] || recurrent[1] == 0) {
    throw InvalidArgument(
        fmt::format("lstm: weight_hh has shape {}, expected [4 · hidden_size, hidden_size]",
                    to_string(recurrent)));
  }
  check_shape("weight_ih", parameters.weight_ih, {recurrent[0], x.extent(2)});
  if (parameters.bias_ih.is_defined() != parameters.bias_hh.is_defined()) {
    throw InvalidArgument("lstm: one bias is given, expected both or none");
  }
  if (!parameters.bias_ih.is_defined()) return;
  check_shape("bias_ih", parameters.bias_ih, {recurrent[0]});
  check_shape("bias_hh", parameters.bias_hh, {recurrent[0]});
}

template <class T>
void check_steps(const Variable<T>& x, const LstmSteps& steps) {
  if (steps.lengths.empty()) return;
  if (static_cast<std::int64_t>(steps.lengths.size()) != x.extent(0)) {
    throw InvalidArgument(fmt::format("lstm: {} lengths are given for a batch of {}",
                                      steps.lengths.size(), x.extent(0)));
  }
  for (const std::int64_t length : steps.lengths) {
    if (length >= 0 && length <= x.extent(1)) continue;
    throw InvalidArgument(
        fmt::format("lstm: a length is {}, expected 0 to {}", length, x.extent(1)));
  }
}

// Returns W x + b_ih + b_hh for all steps.
template <class T>
Tensor<T> projected(const Variable<T>& x, const LstmParameters<T>& parameters) {
  if (!parameters.bias_ih.is_defined()) {
    return linear_forward<T>(x.value(), parameters.weight_ih.value(), {});
  }
  Tensor<T> bias = to_tensor(parameters.bias_ih.value());
  add_into(bias.view(), parameters.bias_hh.value());
  return linear_forward<T>(x.value(), parameters.weight_ih.value(), bias);
}

template <class T>
Variable<T> start_or_zeros(const Variable<T>& start, const Shape& shape) {
  return start.is_defined() ? start : Variable<T>(Tensor<T>(shape));
}

// Reshapes [batch, length, width] to [batch · length, width].
template <class T>
TensorView<const T> as_rows(TensorView<const T> x) {
  return x.reshape({x.extent(0) * x.extent(1), x.extent(2)});
}

// The tensors that are saved for the backward pass.
template <class T>
struct SavedLstm {
  LstmOrder order;
  Saved<T> x, weight_ih, weight_hh, hidden, cell;
  Value<T> gates, cells, out;
};

enum Input : std::size_t { kX, kWeightIh, kWeightHh, kBiasIh, kBiasHh, kHidden, kCell };

template <class T>
void give_gradients(const SavedLstm<T>& saved, Step<T>& step) {
  const LstmStart<TensorView<const T>> start{saved.hidden.view(), saved.cell.view()};
  LstmGradients<T> grads =
      lstm_backward<T>(saved.order, saved.weight_hh.view(), start,
                       {saved.gates.view(), saved.cells.view(), saved.out.view()}, step.grad());
  const TensorView<const T> grad = as_rows<T>(grads.gates.view());
  const bool has_rows = grad.extent(0) != 0;
  const auto add_product = [&](Input weight, TensorView<const T> rows) {
    if (!step.wants(weight) || !has_rows || rows.empty()) return;
    matmul(grad.permute({1, 0}), rows, step.sum_for(weight), {.alpha = 1, .beta = 1});
  };
  add_product(kWeightIh, as_rows<T>(saved.x.view()));
  if (step.wants(kWeightHh)) {
    const Tensor<T> before = hidden_before<T>(saved.order, start.hidden, saved.out.view());
    add_product(kWeightHh, as_rows<T>(before.view()));
  }
  if (step.wants(kBiasIh) || step.wants(kBiasHh)) {
    Tensor<T> of_bias = reduce_to(grad, Shape{grad.extent(1)});
    step.give(kBiasIh, of_bias);
    step.give(kBiasHh, std::move(of_bias));
  }
  if (step.wants(kX) && has_rows && saved.x.shape()[2] != 0) {
    const TensorView<T> sum = step.sum_for(kX);
    matmul(grad, saved.weight_ih.view(), sum.reshape({grad.extent(0), sum.extent(2)}),
           {.alpha = 1, .beta = 1});
  }
  step.give(kHidden, std::move(grads.start.hidden));
  step.give(kCell, std::move(grads.start.cell));
}

}  // namespace

template <class T>
LstmOutput<T> lstm(const Variable<T>& x, const LstmParameters<T>& parameters,
                   const LstmState<T>& initial, const LstmSteps& steps) {
  const FloatEnvironment environment;
  refuse_divided("lstm");
  check_parameters(x, parameters);
  check_steps(x, steps);
  const std::int64_t batch = x.extent(0);
  const std::int64_t length = x.extent(1);
  const std::int64_t hidden_size = parameters.weight_hh.extent(1);
  const Variable<T> hidden = start_or_zeros(initial.hidden, {batch, hidden_size});
  const Variable<T> cell = start_or_zeros(initial.cell, {batch, hidden_size});
  check_shape("the initial hidden state", hidden, {batch, hidden_size});
  check_shape("the initial cell", cell, {batch, hidden_size});

  const LstmOrder order(length, steps.is_reverse, steps.lengths);
  const Value<T> gates(projected(x, parameters));
  const Value<T> cells(Tensor<T>::uninitialized({batch, length, hidden_size}));
  const Value<T> out(Tensor<T>::uninitialized({batch, length + 2, hidden_size}));
  lstm_forward<T>(order, parameters.weight_hh.value(), {hidden.value(), cell.value()},
                  {gates.writable(), cells.writable(), out.writable()});
  const SavedLstm<T> saved{order,
                           Saved(x),
                           Saved(parameters.weight_ih),
                           Saved(parameters.weight_hh),
                           Saved(hidden),
                           Saved(cell),
                           gates,
                           cells,
                           out};
  const Variable<T> all = record<T>("lstm", out,
                                    {x, parameters.weight_ih, parameters.weight_hh,
                                     parameters.bias_ih, parameters.bias_hh, hidden, cell},
                                    [saved](Step<T>& step) { give_gradients(saved, step); });
  return {slice(all, 1, 0, length), {select(all, 1, length), select(all, 1, length + 1)}};
}

template HEED_API LstmOutput<float> lstm(const Variable<float>&, const LstmParameters<float>&,
                                         const LstmState<float>&, const LstmSteps&);
template HEED_API LstmOutput<double> lstm(const Variable<double>&, const LstmParameters<double>&,
                                          const LstmState<double>&, const LstmSteps&);

}}}  // namespace heed::v0::nn
