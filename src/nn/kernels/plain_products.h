// The function of ProductKernels in plain loops, for processors and builds without vectors. Where
// multiply-adds are not fused, it has the bits of vectors.
#pragma once

#include <algorithm>
#include <cstdint>

#include "nn/kernels/products.h"
#include "simd/shapes.h"

namespace heed { inline namespace v0 { namespace nn {

inline constexpr std::int64_t kPlainColumns = 64;

template <class T>
void multiply_plainly(const ProductOperands<T>& x) {
  T part[kPlainColumns];
  for (std::int64_t i = 0; i < x.rows; ++i) {
    for (std::int64_t column = 0; column < x.columns; column += kPlainColumns) {
      const std::int64_t count = std::min(kPlainColumns, x.columns - column);
      T* const out = x.out + i * x.out_stride + column;
      for (std::int64_t first = 0; first < x.steps; first += kernels::kSummedSteps) {
        std::fill_n(part, count, T{0});
        for (std::int64_t k = first; k < std::min(first + kernels::kSummedSteps, x.steps); ++k) {
          const T a = x.a[i * x.a_stride + k];
          const T* const b = x.b + k * x.b_stride + column * x.b_column_stride;
          for (std::int64_t j = 0; j < count; ++j) part[j] += a * b[j * x.b_column_stride];
        }
        const bool adds = x.adds || first > 0;
        for (std::int64_t j = 0; j < count; ++j) out[j] = adds ? out[j] + part[j] : part[j];
      }
    }
  }
}

}}}  // namespace heed::v0::nn
