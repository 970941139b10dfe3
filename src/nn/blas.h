/// Dense matrix products of backward passes: the only caller of BLAS.
#pragma once

#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// The factors of a product: out = alpha · a · b + beta · out.
template <class T>
struct ProductScale {
  T alpha = 1;
  T beta = 0;  ///< if 0, the old content of `out` is not read
};

/// out = alpha · a · b + beta · out for a [m, k], b [k, n] and out [m, n], which must not overlap a
/// or b. Views that are row-major or transposed, with or without gaps between rows, are passed to
/// BLAS directly; others are copied first. The rows of `out` are divided into blocks of a fixed
/// size, each one single-threaded call, so the result does not depend on the number of threads.
/// @throws InvalidArgument when a rank is not 2, the shapes do not fit or an extent exceeds 2³¹ −
/// 1.
void matmul(TensorView<const float> a, TensorView<const float> b, TensorView<float> out,
            ProductScale<float> scale = {});
void matmul(TensorView<const double> a, TensorView<const double> b, TensorView<double> out,
            ProductScale<double> scale = {});

}}  // namespace heed::v0
