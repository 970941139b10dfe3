// The softmax of one row for attention: with keys that are not seen, and a sink.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "heed/core/config.h"
#include "heed/core/elementary.h"

namespace heed { inline namespace v0 { namespace reference {

// True if a masked score takes part in the softmax. NaN does, so that it reaches the result.
template <class Real>
bool is_seen(Real masked_score) {
  return masked_score != -std::numeric_limits<Real>::infinity();
}

// weights[k] = exp(scores[k] − lse), with lse = log(Σ exp(scores) + exp(sink)), which is returned.
// A score of −infinity has weight 0; for a row that sees no key lse is −infinity, or the sink.
template <class Real>
Real softmax_row(std::span<const Real> scores, std::optional<Real> sink, std::span<Real> weights) {
  constexpr Real kInfinity = std::numeric_limits<Real>::infinity();
  constexpr Real kSmallestWeight = static_cast<Real>(0x1p-100);

  Real largest = sink.value_or(-kInfinity);
  for (const Real score : scores) {
    if (is_seen(score) && !(score <= largest)) largest = score;
  }
  Real sum = sink && is_seen(*sink) ? elementary::exp(*sink - largest) : 0;
  for (std::size_t k = 0; k < scores.size(); ++k) {
    const Real weight = is_seen(scores[k]) ? elementary::exp(scores[k] - largest) : 0;
    weights[k] = weight < kSmallestWeight ? 0 : weight;
    sum += weights[k];
  }
  if (sum == 0) return -kInfinity;
  for (Real& weight : weights) weight /= sum;
  return largest + elementary::log(sum);
}

// grad_scores[k] = weights[k] · (grad_weights[k] − sum), and 0 for a weight of 0.
template <class Real>
void softmax_backward_row(std::span<const Real> grad_weights, std::span<const Real> weights,
                          Real sum, std::span<Real> grad_scores) {
  for (std::size_t k = 0; k < weights.size(); ++k) {
    grad_scores[k] = weights[k] == 0 ? 0 : weights[k] * (grad_weights[k] - sum);
  }
}

// As above with sum = Σ weights · grad_weights, which is returned.
template <class Real>
Real softmax_backward_row(std::span<const Real> grad_weights, std::span<const Real> weights,
                          std::span<Real> grad_scores) {
  Real sum = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    if (weights[k] != 0) sum += weights[k] * grad_weights[k];
  }
  softmax_backward_row<Real>(grad_weights, weights, sum, grad_scores);
  return sum;
}

}}}  // namespace heed::v0::reference
