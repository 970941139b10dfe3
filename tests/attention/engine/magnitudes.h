// The sums of the magnitudes of what is added up to attention and its gradients, in double.
//
// Rounding errors are proportional to these, not to the results: where terms cancel, a result may
// be smaller than any rounding of its terms. Then an error relative to the result says how far the
// terms cancel, and not how well they were added.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "heed/attention/reference.h"
#include "support/exact.h"
#include "support/fused.h"

namespace heed::testing_support {

// The steps of docs/semantics.md with |x| for each number x and sums for differences. Of options,
// those of SweptOptions count.
class Magnitudes {
 public:
  Magnitudes(FloatView grad_out, const InputViews& in, const AttentionOptions& options)
      : options_(options),
        grad_out_(exactly(grad_out)),
        query_(exactly(in.query)),
        key_(exactly(in.key)),
        value_(exactly(in.value)),
        steps_(reference::attention(
            query_, key_, value_, *options_,
            reference::Keep::kScores | reference::Keep::kWeights | reference::Keep::kDropped)),
        out_(steps_.out.shape()),
        of_weights_(static_cast<std::size_t>(key_.extent(2))) {
    gradients_.query = Tensor<double>(query_.shape());
    gradients_.key = Tensor<double>(key_.shape());
    gradients_.value = Tensor<double>(value_.shape());
    if ((*options_).alibi_slopes) {
      gradients_.alibi_slopes = Tensor<double>((*options_).alibi_slopes->shape());
    }
    if ((*options_).bias) gradients_.bias = Tensor<double>((*options_).bias->shape());
    if ((*options_).sinks) gradients_.sinks = Tensor<double>((*options_).sinks->shape());
    for (std::int64_t b = 0; b < query_.extent(0); ++b) {
      for (std::int64_t h = 0; h < query_.extent(1); ++h) {
        for (std::int64_t q = 0; q < query_.extent(2); ++q) add_row(b, h, q);
      }
    }
  }

  const Tensor<double>& out() const { return out_; }
  const AttentionGradients<double>& gradients() const { return gradients_; }

 private:
  void add_row(std::int64_t b, std::int64_t h, std::int64_t q) {
    const std::int64_t kv_head = h / (query_.extent(1) / key_.extent(1));
    const std::int64_t value_dim = value_.extent(3);
    const double* const grad_out = &grad_out_(b, h, q, 0);
    double delta = 0;
    for_each_seen_key(b, h, q, [&](std::int64_t k, double weight, double dropped) {
      const double* const value = &value_(b, kv_head, k, 0);
      double* const grad_value = &gradients_.value(b, kv_head, k, 0);
      double* const out = &out_(b, h, q, 0);
      double grad_weight = 0;
      for (std::int64_t d = 0; d < value_dim; ++d) {
        grad_weight += std::abs(grad_out[d] * value[d]);
        grad_value[d] += dropped * std::abs(grad_out[d]);
        out[d] += dropped * std::abs(value[d]);
      }
      grad_weight *= dropped / weight;
      of_weights_[static_cast<std::size_t>(k)] = grad_weight;
      delta += weight * grad_weight;
    });
    for_each_seen_key(b, h, q, [&](std::int64_t k, double weight, double) {
      add_score(b, h, q, k, weight * (of_weights_[static_cast<std::size_t>(k)] + delta));
    });
    if ((*options_).sinks) {
      gradients_.sinks(h) += std::exp((*(*options_).sinks)(h)-steps_.lse(b, h, q)) * delta;
    }
  }

  void add_score(std::int64_t b, std::int64_t h, std::int64_t q, std::int64_t k, double grad) {
    const AttentionOptions64& options = *options_;
    if (options.bias) cells(gradients_.bias)(b, h, q, k) += grad;
    if (options.alibi_slopes) {
      const std::int64_t position = q + options.query_offset.values()[0];
      gradients_.alibi_slopes(h) += grad * std::abs(static_cast<double>(k - position));
    }
    if (options.softcap != 0) {
      const double tanh = std::tanh(steps_.scores(b, h, q, k) / options.softcap);
      grad *= 1 - tanh * tanh;
    }
    const std::int64_t kv_head = h / (query_.extent(1) / key_.extent(1));
    const std::int64_t head_dim = query_.extent(3);
    const double scaled = grad / std::sqrt(static_cast<double>(head_dim));
    const double* const query = &query_(b, h, q, 0);
    const double* const key = &key_(b, kv_head, k, 0);
    double* const grad_query = &gradients_.query(b, h, q, 0);
    double* const grad_key = &gradients_.key(b, kv_head, k, 0);
    for (std::int64_t d = 0; d < head_dim; ++d) {
      grad_query[d] += scaled * std::abs(key[d]);
      grad_key[d] += scaled * std::abs(query[d]);
    }
  }

  // Calls use(key, weight, weight after dropout).
  template <class Use>
  void for_each_seen_key(std::int64_t b, std::int64_t h, std::int64_t q, const Use& use) const {
    for (std::int64_t k = 0; k < key_.extent(2); ++k) {
      const double weight = steps_.weights(b, h, q, k);
      if (weight != 0) use(k, weight, steps_.dropped(b, h, q, k));
    }
  }

  // The gradient of a bias as one number for each score.
  TensorView<double> cells(Tensor<double>& gradient) const {
    return gradient.view().broadcast_to(steps_.weights.shape());
  }

  ExactOptions options_;
  Tensor<double> grad_out_;
  Tensor<double> query_;
  Tensor<double> key_;
  Tensor<double> value_;
  reference::Result<double> steps_;
  Tensor<double> out_;
  std::vector<double> of_weights_;
  AttentionGradients<double> gradients_;
};

}  // namespace heed::testing_support
