// Matrix products of forward passes. heed computes them itself, in one order of operations, so that
// layers give the same bits on every processor with fused multiply-adds.
#pragma once

#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace nn {

// out = a · b, or out + a · b if `adds`, for a [m, k], b [k, n] and out [m, n], whose rows are
// contiguous; out must not overlap a or b. An element depends only on its row of a and its column
// of b: not on the other rows and columns, the number of threads or the strides.
template <class T>
void product(TensorView<const T> a, TensorView<const T> b, TensorView<T> out, bool adds = false);

}}}  // namespace heed::v0::nn
