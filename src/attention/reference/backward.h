// The reference's way back on checked arguments.
#pragma once

#include "attention/problem.h"
#include "heed/reference.h"

namespace heed::inline v0::reference {

// The gradients of the batch entries in `batches` only, those of query, key and value counted from
// the first of them. `bias_shape` is that of the gradient of the bias, which broadcasts to the
// scores, or null.
template <class Real>
Gradients<Real> backward(const Problem<Real>& problem, TensorView<const Real> grad_out,
                         RowRange batches, const Shape* bias_shape);

}  // namespace heed::inline v0::reference
