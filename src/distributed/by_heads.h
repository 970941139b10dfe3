// Attention with heads divided among ranks: each rank computes some heads, for all tokens.
#pragma once

#include "distributed/backward.h"
#include "distributed/forward.h"
#include "distributed/shared_problem.h"

namespace heed { inline namespace v0 { namespace distributed {

// The counterparts of forward() and backward() for this division.
template <class Real>
void forward_by_heads(const SharedProblem<Real>& problem, const Results<Real>& results);

template <class Real>
AttentionGradients<Real> backward_by_heads(const SharedProblem<Real>& problem,
                                           const BackwardInputs<Real>& inputs);

}}}  // namespace heed::v0::distributed
