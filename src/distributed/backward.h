// The backward pass over tokens that are divided among ranks.
#pragma once

#include "distributed/shared_problem.h"
#include "heed/attention/backward.h"

namespace heed { inline namespace v0 { namespace distributed {

// The results of the forward pass for this rank's queries, and the gradient of its output.
template <class Real>
struct BackwardInputs {
  Rows grad_out;
  Rows out;  // numbers of type Real
  TensorView<const Real> lse;
  TensorView<const Real> lse_low;  // empty if unknown
};

// The gradients of this rank's tokens, as sums of Real, and of all options. All ranks call it; when
// one fails, all throw the same exception.
template <class Real>
AttentionGradients<Real> backward(const SharedProblem<Real>& problem,
                                  const BackwardInputs<Real>& inputs);

}}}  // namespace heed::v0::distributed
