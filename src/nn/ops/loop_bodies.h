// The loops of vector_loops.h, to be inlined into functions for an instruction set.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "heed/core/dual.h"
#include "nn/ops/vector_loops.h"

namespace heed { inline namespace v0 { namespace nn::loop_bodies {

// The number of independent partial sums and maxima.
inline constexpr std::int64_t kLanes = 32;

template <class T>
[[gnu::always_inline]] inline T largest(const T* x, std::int64_t count) {
  T found[kLanes];
  for (T& lane : found) lane = -std::numeric_limits<T>::infinity();
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t j = 0; j < kLanes; ++j) found[j] = x[i + j] > found[j] ? x[i + j] : found[j];
  }
  for (; i < count; ++i) found[0] = x[i] > found[0] ? x[i] : found[0];
  T result = found[0];
  for (const T lane : found) result = lane > result ? lane : result;
  return result;
}

// Returns Σ of(x[i]).
template <class T, class F>
[[gnu::always_inline]] inline double sum(const T* x, std::int64_t count, F of) {
  double sums[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t j = 0; j < kLanes; ++j) sums[j] += of(static_cast<double>(x[i + j]));
  }
  for (; i < count; ++i) sums[0] += of(static_cast<double>(x[i]));
  double total = 0;
  for (const double part : sums) total += part;
  return total;
}

template <class T>
[[gnu::always_inline]] inline double exp_and_sum(const T* x, T shift, std::int64_t count, T* y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = heed::exp(x[i] - shift);
  return sum(
      y, count, [](double element) __attribute__((always_inline)) { return element; });
}

template <class T>
[[gnu::always_inline]] inline void add(const T* x, std::int64_t count, double* __restrict sums) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += static_cast<double>(x[i]);
}

template <class T>
[[gnu::always_inline]] inline double sum_of_squares(const T* x, std::int64_t count) {
  return sum(
      x, count, [](double element) __attribute__((always_inline)) { return element * element; });
}

template <class T>
[[gnu::always_inline]] inline void adam(const AdamFactors<T>& factors, const AdamRange<T>& range) {
  const AdamFactors<T> f = factors;
  T* __restrict const parameter = range.parameter;
  const T* __restrict const grad = range.grad;
  T* __restrict const mean = range.mean;
  T* __restrict const square = range.square;
  for (std::int64_t i = 0; i < range.count; ++i) {
    mean[i] += f.take * (grad[i] - mean[i]);
    square[i] = f.keep_square * square[i] + f.take_square * grad[i] * grad[i];
    parameter[i] =
        f.kept * parameter[i] - f.rate * mean[i] / (std::sqrt(square[i]) / f.root + f.eps);
  }
}

template <class T>
[[gnu::always_inline]] inline void sigmoid_in_place(T* x, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) x[j] = 1 / (1 + heed::exp(-x[j]));
}

template <class T>
[[gnu::always_inline]] inline void lstm_advance(T* gates, T* cell, T* hidden, std::int64_t n) {
  sigmoid_in_place(gates, 2 * n);
  for (std::int64_t j = 2 * n; j < 3 * n; ++j) gates[j] = heed::tanh(gates[j]);
  sigmoid_in_place(gates + 3 * n, n);
  const T* const input = gates;
  const T* const forget = gates + n;
  const T* const candidate = gates + 2 * n;
  const T* const output = gates + 3 * n;
  for (std::int64_t j = 0; j < n; ++j) cell[j] = forget[j] * cell[j] + input[j] * candidate[j];
  for (std::int64_t j = 0; j < n; ++j) hidden[j] = heed::tanh(cell[j]);
  for (std::int64_t j = 0; j < n; ++j) hidden[j] *= output[j];
}

template <class T>
[[gnu::always_inline]] inline void lstm_retreat(const LstmStep<T>& step, const T* grad_hidden,
                                                T* __restrict grad_cell, T* __restrict grad_gates) {
  const std::int64_t n = step.n;
  const T* const gates = step.gates;
  const T* const cell = step.cell;
  const T* const cell_before = step.cell_before;
  for (std::int64_t j = 0; j < n; ++j) {
    const T input = gates[j];
    const T forget = gates[j + n];
    const T candidate = gates[j + 2 * n];
    const T output = gates[j + 3 * n];
    const T squashed = heed::tanh(cell[j]);
    const T of_cell = grad_cell[j] + grad_hidden[j] * output * (1 - squashed * squashed);
    grad_gates[j] = of_cell * candidate * input * (1 - input);
    grad_gates[j + n] = of_cell * cell_before[j] * forget * (1 - forget);
    grad_gates[j + 2 * n] = of_cell * input * (1 - candidate * candidate);
    grad_gates[j + 3 * n] = grad_hidden[j] * squashed * output * (1 - output);
    grad_cell[j] = of_cell * forget;
  }
}

}}}  // namespace heed::v0::nn::loop_bodies
