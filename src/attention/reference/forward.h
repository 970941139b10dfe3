// The reference on checked arguments.
#pragma once

#include "attention/request.h"
#include "heed/reference.h"

namespace heed::inline v0::reference {

// The result for the batch entries in `batches` only, counted from the first of them.
template <class Real>
Result<Real> forward(const Problem<Real>& problem, RowRange batches, Keep keep = Keep::kNothing);

}  // namespace heed::inline v0::reference
