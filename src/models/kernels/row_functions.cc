#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "models/kernels/row_functions.cc"
#include "simd/targets.h"
// The list of targets must be known before the includes that iterate over it.
#include "hwy/foreach_target.h"
// foreach_target must be first: it includes this file once for each instruction set.
#include "attention/kernels/target.h"
#include "hwy/highway.h"
#include "models/kernels/row_bodies.h"
#include "models/kernels/row_functions.h"
#include "simd/compiled.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace models::HWY_NAMESPACE {

namespace {

void layer_norm(const NormRow& norm, const float* x, float* y) {
  row_bodies::layer_norm(norm, x, y);
}
void rms_norm(const NormRow& norm, const float* x, float* y) { row_bodies::rms_norm(norm, x, y); }
void add(const float* x, std::int64_t count, float* __restrict y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] += x[i];
}
void gelu(float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = row_bodies::gelu(x[i]);
}
void gelu_tanh(float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = row_bodies::gelu_tanh(x[i]);
}
void silu(float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = x[i] / (1.0F + detail::float_exp(-x[i]));
}
void relu(float* x, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) x[i] = x[i] < 0 ? 0 : x[i];
}
void multiply(const float* x, std::int64_t count, float* __restrict y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] *= x[i];
}

}  // namespace

const RowFunctions* table() {
  static const RowFunctions functions{.vectors = kernels::name_of_target(HWY_TARGET),
                                      .layer_norm = layer_norm,
                                      .rms_norm = rms_norm,
                                      .add = add,
                                      .gelu = gelu,
                                      .gelu_tanh = gelu_tanh,
                                      .silu = silu,
                                      .relu = relu,
                                      .multiply = multiply};
  return &functions;
}

}}}  // namespace heed::v0::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr kernels::Compiled<RowFunctions> kCompiledFunctions[] = HEED_COMPILED(table);

}  // namespace

const RowFunctions& row_functions() {
  static const RowFunctions& functions = *kernels::table_for(vectors_in_use(), kCompiledFunctions);
  return functions;
}

}}}  // namespace heed::v0::models

#endif  // HWY_ONCE
