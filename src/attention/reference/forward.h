// The forward pass of the reference, on checked arguments.
#pragma once

#include "attention/request/request.h"
#include "heed/attention/reference.h"

namespace heed { inline namespace v0 { namespace reference {

// The result for the batch entries in `batches`; it has entries for these alone.
template <class Real>
Result<Real> forward(const Problem<Real>& problem, RowRange batches, Keep keep = Keep::kNothing);

}}}  // namespace heed::v0::reference
