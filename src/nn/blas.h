/// Dense matrix products: the one place that calls BLAS.
#pragma once

#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// The factors of a product: out = alpha · a · b + beta · out.
template <class T>
struct ProductScale {
  T alpha = 1;
  T beta = 0;  ///< 0: what `out` held before is not read
};

/// out = alpha · a · b + beta · out for a [m, k], b [k, n] and out [m, n], which must not overlap
/// a or b. Views that are row-major or transposed, with gaps or without, go to BLAS as they are;
/// others are copied first. The rows of `out` are divided into blocks of a fixed size, each one
/// single-threaded call, so the bits do not depend on the number of threads.
/// @throws InvalidArgument when a rank is not 2, the shapes do not fit or an extent exceeds 2³¹
/// − 1.
void matmul(TensorView<const float> a, TensorView<const float> b, TensorView<float> out,
            ProductScale<float> scale = {});
void matmul(TensorView<const double> a, TensorView<const double> b, TensorView<double> out,
            ProductScale<double> scale = {});

}}  // namespace heed::v0
