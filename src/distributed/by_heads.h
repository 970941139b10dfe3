// Attention whose heads are divided among ranks: each computes some of them, for all tokens.
#pragma once

#include "distributed/backward.h"
#include "distributed/forward.h"
#include "distributed/shared_problem.h"

namespace heed { inline namespace v0 { namespace distributed {

// As forward() and backward() do what is divided by tokens.
template <class Real>
void forward_by_heads(const SharedProblem<Real>& problem, const Results<Real>& results);

template <class Real>
AttentionGradients<Real> backward_by_heads(const SharedProblem<Real>& problem,
                                           const BackwardInputs<Real>& inputs);

}}}  // namespace heed::v0::distributed
