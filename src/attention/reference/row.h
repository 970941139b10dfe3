// One query's way through attention, step by step. Forward and backward walk it alike.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "attention/problem.h"
#include "attention/reference/softmax.h"
#include "heed/cancellation.h"
#include "heed/dual.h"

namespace heed::inline v0::reference {

template <class Real>
Real dot(const Real* a, const Real* b, std::int64_t length) {
  Real sum = 0;
  for (std::int64_t i = 0; i < length; ++i) sum += a[i] * b[i];
  return sum;
}

// softcap · tanh(score / softcap), for a number or a dual number.
template <class Score, class Real>
Score capped_score(Score score, Real softcap) {
  return softcap == 0 ? score : Score(softcap) * tanh(score / Score(softcap));
}

// Row [batch, head, index] of a rank-4 tensor with a contiguous innermost dimension.
template <class T>
T* row_pointer(const TensorView<T>& tensor, std::int64_t batch, std::int64_t head,
               std::int64_t index) {
  return tensor.data() + batch * tensor.stride(0) + head * tensor.stride(1) +
         index * tensor.stride(2);
}

// The scores and weights of one query for all keys.
template <class Real>
class Row {
 public:
  std::vector<Real> scores;    // scale · query · key
  std::vector<Real> capped;    // after the softcap
  std::vector<Real> modified;  // after score_mod, ALiBi and bias
  std::vector<Real> masked;    // after the mask
  std::vector<Real> weights;   // after the softmax
  std::vector<Real> dropped;   // after dropout
  Real lse = 0;

  explicit Row(const Problem<Real>& problem) : problem_(problem) {
    for (auto* step : {&scores, &capped, &modified, &masked, &weights, &dropped}) {
      step->resize(static_cast<std::size_t>(problem.shape.kv_len));
    }
  }

  // Computes every step for query (batch, head, q). Cells that are not visible are skipped, unless
  // `hidden_too` asks for their scores.
  void compute(std::int64_t batch, std::int64_t head, std::int64_t q, bool hidden_too = false) {
    check_cancelled();
    at_ = {batch, head, q, 0};
    for (at_.k = 0; at_.k < problem_.shape.kv_len; ++at_.k) {
      const auto k = static_cast<std::size_t>(at_.k);
      const bool visible = problem_.mask.visible(at_);
      masked[k] = -std::numeric_limits<Real>::infinity();
      if (!visible && !hidden_too) continue;
      scores[k] = problem_.scale * dot(query(), key(at_.k), problem_.head_dim);
      capped[k] = capped_score(scores[k], problem_.softcap);
      modified[k] = problem_.score_mod(capped[k], position_of(at_.k)) + alibi() + bias();
      if (visible) masked[k] = modified[k] + static_cast<Real>(problem_.mask.added(at_));
    }
    lse = softmax_row<Real>(masked, sink(), weights);
    for (std::size_t k = 0; k < weights.size(); ++k) {
      dropped[k] = weights[k] == 0 ? 0 : weights[k] * dropout_factor(static_cast<std::int64_t>(k));
    }
  }

  // d(score after softcap and score_mod) / d(score), by running both on a dual number.
  Real score_derivative(std::int64_t k) const {
    const Dual<Real> score(scores[static_cast<std::size_t>(k)], 1);
    return problem_.score_mod(capped_score(score, problem_.softcap), position_of(k)).derivative;
  }

  // |kv_idx − q_idx|
  Real distance(std::int64_t k) const {
    return static_cast<Real>(std::abs(k - at_.q - problem_.shape.query_offset));
  }

  Real dropout_factor(std::int64_t k) const {
    return static_cast<Real>(problem_.dropout.factor(position_of(k)));
  }

  const Real* query() const { return row_pointer(problem_.query, at_.batch, at_.head, at_.q); }
  const Real* key(std::int64_t k) const {
    return row_pointer(problem_.key, at_.batch, kv_head(), k);
  }
  const Real* value(std::int64_t k) const {
    return row_pointer(problem_.value, at_.batch, kv_head(), k);
  }
  std::int64_t kv_head() const { return problem_.kv_head(at_.head); }
  std::optional<Real> sink() const {
    return problem_.sinks ? std::optional<Real>((*problem_.sinks)(at_.head)) : std::nullopt;
  }

 private:
  ScorePosition position_of(std::int64_t k) const {
    return detail::position(problem_.shape, {at_.batch, at_.head, at_.q, k});
  }
  Real alibi() const {
    return problem_.alibi_slopes ? -(*problem_.alibi_slopes)(at_.head) * distance(at_.k) : Real{0};
  }
  Real bias() const {
    return problem_.bias ? (*problem_.bias)(at_.batch, at_.head, at_.q, at_.k) : Real{0};
  }

  const Problem<Real>& problem_;
  detail::Cell at_{};
};

}  // namespace heed::inline v0::reference
