// The computations of a transformer between matrix products, row by row, compiled for each
// instruction set. No compiler contraction or reordering, so the results are the same with each.
#pragma once

#include <cstdint>

namespace heed { inline namespace v0 { namespace models {

// The operation of a norm on a row: y = (x − mean) / √(variance + epsilon) · weight + bias, or for
// RMS norms y = x / √(mean of x² + epsilon) · weight.
struct NormRow {
  const float* weight;
  const float* bias;  // null if there is none
  std::int64_t size;
  double epsilon;
};

struct RowFunctions {
  const char* vectors;  // the name of the instruction set
  void (*layer_norm)(const NormRow& norm, const float* x, float* y);
  void (*rms_norm)(const NormRow& norm, const float* x, float* y);
  // y += x
  void (*add)(const float* x, std::int64_t count, float* y);
  // In place: x · Φ(x), within 5e-7 · max(1, |x| / 12).
  void (*gelu)(float* x, std::int64_t count);
  // In place: ½ x (1 + tanh(√(2/π) (x + 0.044715 x³))).
  void (*gelu_tanh)(float* x, std::int64_t count);
  // In place: x / (1 + exp(−x)).
  void (*silu)(float* x, std::int64_t count);
  // In place: max(x, 0); NaN stays NaN.
  void (*relu)(float* x, std::int64_t count);
  // y *= x
  void (*multiply)(const float* x, std::int64_t count, float* y);
};

// The functions for the instruction set that attention uses, which HEED_TARGET may set; for the
// reference, those of the baseline. Throws InvalidArgument as attention does.
const RowFunctions& row_functions();

}}}  // namespace heed::v0::models
