// The backward pass over tokens that are divided among ranks.
#pragma once

#include "distributed/shared_problem.h"
#include "heed/attention/backward.h"

namespace heed { inline namespace v0 { namespace distributed {

// What the forward pass made of this rank's queries, and the gradient of that.
template <class Real>
struct BackwardInputs {
  Rows grad_out;
  Rows out;  // as numbers of Real
  TensorView<const Real> lse;
  TensorView<const Real> lse_low;  // empty where it is not known
};

// The gradients of this rank's tokens, as sums of Real, and of all options. All ranks call it; when
// one fails all throw what it threw.
template <class Real>
AttentionGradients<Real> backward(const SharedProblem<Real>& problem,
                                  const BackwardInputs<Real>& inputs);

}}}  // namespace heed::v0::distributed
