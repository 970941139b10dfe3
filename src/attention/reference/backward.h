// The reference's backward pass on checked arguments.
#pragma once

#include "attention/request/request.h"
#include "heed/attention/reference.h"

namespace heed { inline namespace v0 { namespace reference {

// The gradients of the batch entries in `batches` only, those of query, key and value counted from
// the first of them.
template <class Real>
Gradients<Real> backward(const Problem<Real>& problem, TensorView<const Real> grad_out,
                         RowRange batches);

}}}  // namespace heed::v0::reference
