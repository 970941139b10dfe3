// The tensors that receive gradients, and where a backend writes into them.
#pragma once

#include <utility>

#include "attention/calls.h"
#include "heed/attention_backward.h"

namespace heed::inline v0 {

// The gradients of what the options hold, all 0: those of what terms learn, and of sinks.
template <class Real>
AttentionGradients<Real> make_option_gradients(const Request<Real>& request) {
  AttentionGradients<Real> gradients;
  for (const auto& term : request.terms) {
    if (term->gradient() == nullptr) continue;
    gradients.*term->gradient() = Tensor<Real>(term->gradient_shape());
  }
  if (request.sinks) gradients.sinks = Tensor<Real>(request.sinks->shape());
  return gradients;
}

// Lets the targets be these gradients of the options of one request.
template <class Real>
void aim_at_options(const Request<Real>& request, AttentionGradients<Real>& gradients,
                    engine::GradientTargets<Real>& targets) {
  const ScoreShape& shape = request.shape;
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
      : options_(make_option_gradients(request)) {
    gradients_.query = Tensor<T>::uninitialized(query);
    gradients_.key = Tensor<T>(key);
    gradients_.value = Tensor<T>(value);
    targets_.query = rows_of(gradients_.query.view());
    targets_.key = rows_of(gradients_.key.view());
    targets_.value = rows_of(gradients_.value.view());
    aim_at_options(request, options_, targets_);
  }

  const engine::GradientTargets<Real>& targets() const { return targets_; }

  AttentionGradients<T, Real> take() && {
    gradients_.alibi_slopes = std::move(options_.alibi_slopes);
    gradients_.bias = std::move(options_.bias);
    gradients_.sinks = std::move(options_.sinks);
    return std::move(gradients_);
  }

 private:
  AttentionGradients<Real> options_;
  AttentionGradients<T, Real> gradients_;
  engine::GradientTargets<Real> targets_;
};

}  // namespace heed::inline v0
