// The loops in which training spends its time outside of matrix products; for float, compiled for
// each instruction set. No compiler contraction or reordering, so the results are the same with
// each.
#pragma once

#include <cstdint>

namespace heed { inline namespace v0 { namespace nn {

// The factors of one Adam step, for all elements.
template <class T>
struct AdamFactors {
  T kept;                            // of the parameter, before its update
  T take, keep_square, take_square;  // 1 − β₁, β₂, 1 − β₂
  T rate;                            // learning rate / (1 − β₁ᵗ)
  T root;                            // √(1 − β₂ᵗ)
  T eps;
};

template <class T>
struct AdamRange {
  T* parameter;
  const T* grad;
  T* mean;
  T* square;
  std::int64_t count;
};

// The values of one sequence's LSTM step that the backward pass reads.
template <class T>
struct LstmStep {
  const T* gates;        // [4 · n], activated
  const T* cell;         // [n], after the step
  const T* cell_before;  // [n]
  std::int64_t n;
};

template <class T>
struct VectorLoops {
  const char* vectors;  // the name of the instruction set
  // The largest of x, −∞ if x is empty; NaN is ignored.
  T (*largest)(const T* x, std::int64_t count);
  // y = exp(x − shift). Returns Σ y.
  double (*exp_and_sum)(const T* x, T shift, std::int64_t count, T* y);
  // sums += x
  void (*add)(const T* x, std::int64_t count, double* sums);
  // Σ x²
  double (*sum_of_squares)(const T* x, std::int64_t count);
  void (*adam)(const AdamFactors<T>& factors, const AdamRange<T>& range);
  // Activates gates [4 · n] in place and advances cell and hidden [n] by one step.
  void (*lstm_advance)(T* gates, T* cell, T* hidden, std::int64_t n);
  // Turns the gradients of hidden and cell after a step into those of the gates before activation
  // and of the cell before the step.
  void (*lstm_retreat)(const LstmStep<T>& step, const T* grad_hidden, T* grad_cell, T* grad_gates);
};

// The loops for the instruction set that attention uses, which HEED_TARGET may set; for the
// reference, those of the baseline. Throws InvalidArgument as attention does.
template <class T>
const VectorLoops<T>& vector_loops();

}}}  // namespace heed::v0::nn
