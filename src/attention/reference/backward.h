// The backward pass of the reference, on checked arguments.
#pragma once

#include "attention/request/request.h"
#include "heed/attention/reference.h"

namespace heed { inline namespace v0 { namespace reference {

// The gradients of the batch entries in `batches`; those of query, key and value have entries for
// these alone.
template <class Real>
Gradients<Real> backward(const Problem<Real>& problem, TensorView<const Real> grad_out,
                         RowRange batches);

}}}  // namespace heed::v0::reference
