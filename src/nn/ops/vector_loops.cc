#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/ops/vector_loops.cc"
#include "simd/targets.h"
// The list of targets must be known before the includes that iterate over it.
#include "hwy/foreach_target.h"
// foreach_target must be first: it includes this file once for each instruction set.
#include "attention/kernels/target.h"
#include "hwy/highway.h"
#include "nn/ops/loop_bodies.h"
#include "nn/ops/vector_loops.h"
#include "simd/compiled.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace nn::HWY_NAMESPACE {

namespace {

// The loops for one element type, compiled for the instruction set of this pass.
template <class T>
struct Compiled {
  static T largest(const T* x, std::int64_t count) { return loop_bodies::largest(x, count); }
  static double exp_and_sum(const T* x, T shift, std::int64_t count, T* y) {
    return loop_bodies::exp_and_sum(x, shift, count, y);
  }
  static void add(const T* x, std::int64_t count, double* sums) {
    loop_bodies::add(x, count, sums);
  }
  static double sum_of_squares(const T* x, std::int64_t count) {
    return loop_bodies::sum_of_squares(x, count);
  }
  static void adam(const AdamFactors<T>& factors, const AdamRange<T>& range) {
    loop_bodies::adam(factors, range);
  }
  static void lstm_advance(T* gates, T* cell, T* hidden, std::int64_t n) {
    loop_bodies::lstm_advance(gates, cell, hidden, n);
  }
  static void lstm_retreat(const LstmStep<T>& step, const T* grad_hidden, T* grad_cell,
                           T* grad_gates) {
    loop_bodies::lstm_retreat(step, grad_hidden, grad_cell, grad_gates);
  }

  static const VectorLoops<T>* table() {
    static const VectorLoops<T> loops{.vectors = kernels::name_of_target(HWY_TARGET),
                                      .largest = largest,
                                      .exp_and_sum = exp_and_sum,
                                      .add = add,
                                      .sum_of_squares = sum_of_squares,
                                      .adam = adam,
                                      .lstm_advance = lstm_advance,
                                      .lstm_retreat = lstm_retreat};
    return &loops;
  }
};

}  // namespace

const VectorLoops<float>* float_loops() { return Compiled<float>::table(); }
const VectorLoops<double>* double_loops() { return Compiled<double>::table(); }

}}}  // namespace heed::v0::nn::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace heed { inline namespace v0 { namespace nn {

namespace {

constexpr kernels::Compiled<VectorLoops<float>> kCompiledForFloat[] = HEED_COMPILED(float_loops);
constexpr kernels::Compiled<VectorLoops<double>> kCompiledForDouble[] = HEED_COMPILED(double_loops);

}  // namespace

template <>
const VectorLoops<float>& vector_loops() {
  static const auto& loops = *kernels::table_for(vectors_in_use(), kCompiledForFloat);
  return loops;
}

template <>
const VectorLoops<double>& vector_loops() {
  static const auto& loops = *kernels::table_for(vectors_in_use(), kCompiledForDouble);
  return loops;
}

}}}  // namespace heed::v0::nn

#endif  // HWY_ONCE
