// The gradients of the tensors in the options of a request.
#pragma once

#include "attention/request/request.h"
#include "heed/attention/backward.h"

namespace heed { inline namespace v0 {

// The gradients of sinks and of the terms that have any, all 0.
template <class Real>
OptionGradients<Real> make_option_gradients(const Request<Real>& request) {
  OptionGradients<Real> gradients;
  for (const auto& term : request.terms) {
    if (term->gradient() == nullptr) continue;
    gradients.*term->gradient() = Tensor<Real>(term->gradient_shape());
  }
  if (request.sinks) gradients.sinks = Tensor<Real>(request.sinks->shape());
  return gradients;
}

}}  // namespace heed::v0
