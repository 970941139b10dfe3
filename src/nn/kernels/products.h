// Matrix products in one order of operations, for each instruction set.
#pragma once

#include <cstdint>

namespace heed { inline namespace v0 { namespace nn {

// out[i][j] = Σ_k a[i][k] · b[k][j], added to what `out` has if `adds`. The rows of a and out are
// contiguous.
template <class T>
struct ProductOperands {
  const T* a;
  std::int64_t a_stride;
  const T* b;
  std::int64_t b_stride;         // from k to k + 1
  std::int64_t b_column_stride;  // from j to j + 1
  T* out;
  std::int64_t out_stride;
  std::int64_t rows, columns, steps;
  bool adds;
};

template <class T>
struct ProductKernels {
  const char* vectors;  // the name of the instruction set
  // The columns that are computed at a time.
  std::int64_t columns;
  // Each result is a chain of multiply-adds for every kernels::kSummedSteps of k, in the order of
  // k, and these sums are added in the same order. Sets with fused multiply-adds have the same
  // bits; a result does not depend on which others are computed with it.
  void (*multiply)(const ProductOperands<T>& operands);
};

// The kernels for the instruction set that attention uses, which HEED_TARGET may set; for the
// reference, those of the baseline. Throws InvalidArgument as attention does.
template <class T>
const ProductKernels<T>& product_kernels();

}}}  // namespace heed::v0::nn
