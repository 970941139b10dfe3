// The tensors of gradients: those of query, key and value, and of the tensors in the options.
#pragma once

#include <utility>

#include "attention/request/call.h"
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

// Makes the targets point to these gradients of the options of one request.
template <class Real>
void aim_at_options(const Request<Real>& request, OptionGradients<Real>& gradients,
                    GradientTargets<Real>& targets) {
  const ScoreShape& shape = request.scores();
  for (const auto& term : request.terms) {
    targets.per_head.push_back(nullptr);
    if (term->gradient() == nullptr) continue;
    Tensor<Real>& gradient = gradients.*term->gradient();
    if (term->sums_per_head() > 0) {
      targets.per_head.back() = gradient.data();
    } else if (!gradient.empty()) {
      targets.cells =
          gradient.view().broadcast_to({shape.batch, shape.num_heads, shape.q_len, shape.kv_len});
    }
  }
  targets.sinks = gradients.sinks.data();
}

// The gradients of one request.
template <class T>
class GradientTensors {
 public:
  using Real = Computed<T>;

  GradientTensors(const Request<Real>& request, const Shape& query, const Shape& key,
                  const Shape& value)
      : gradients_{make_option_gradients(request), Tensor<T>::uninitialized(query), Tensor<T>(key),
                   Tensor<T>(value)} {
    targets_.query = rows_of(gradients_.query.view());
    targets_.key = rows_of(gradients_.key.view());
    targets_.value = rows_of(gradients_.value.view());
    aim_at_options<Real>(request, gradients_, targets_);
  }

  const GradientTargets<Real>& targets() const { return targets_; }

  AttentionGradients<T, Real> take() && { return std::move(gradients_); }

 private:
  AttentionGradients<T, Real> gradients_;
  GradientTargets<Real> targets_;
};

}}  // namespace heed::v0
