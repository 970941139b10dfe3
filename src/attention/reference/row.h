// The steps of attention for one query, for the forward and the backward pass.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "attention/reference/arithmetic.h"
#include "attention/reference/softmax.h"
#include "attention/request/request.h"
#include "heed/core/cancellation.h"
#include "heed/core/data_type.h"
#include "heed/core/dual.h"

namespace heed { inline namespace v0 { namespace reference {

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
  std::vector<Real> modified;  // after all terms
  std::vector<Real> masked;    // after the mask
  std::vector<Real> weights;   // after the softmax
  std::vector<Real> dropped;   // after dropout
  Real lse = 0;

  explicit Row(const Problem<Real>& problem) : problem_(problem) {
    for (auto* step : {&scores, &capped, &modified, &masked, &weights, &dropped}) {
      step->resize(static_cast<std::size_t>(problem.shape.kv_len));
    }
  }

  // Computes every step for query (batch, head, q). Keys that are not visible are skipped, unless
  // hidden_too is true: then their scores are computed as well.
  void compute(std::int64_t batch, std::int64_t head, std::int64_t q, bool hidden_too = false) {
    check_cancelled();
    at_ = {{batch, head, q, 0}};
    if (problem_.terms.read_query()) scale_query();
    for (at_.k = 0; at_.k < problem_.shape.kv_len; ++at_.k) {
      const auto k = static_cast<std::size_t>(at_.k);
      const bool visible = problem_.mask.visible(at_);
      masked[k] = -std::numeric_limits<Real>::infinity();
      if (!visible && !hidden_too) continue;
      scores[k] = problem_.scale * dot(query(), key(at_.k), problem_.head_dim());
      apply_terms(k);
      if (visible) masked[k] = modified[k] + static_cast<Real>(problem_.mask.added(at_));
    }
    lse = softmax_row<Real>(masked, sink(), weights);
    for (std::size_t k = 0; k < weights.size(); ++k) {
      dropped[k] = weights[k] == 0 ? 0 : weights[k] * dropout_factor(static_cast<std::int64_t>(k));
    }
  }

  // d(score after all terms) / d(score), computed with a dual number.
  Real score_derivative(std::int64_t k) const {
    Dual<Real> score(scores[static_cast<std::size_t>(k)], 1);
    for (const auto& term : problem_.terms) score = term->apply(score, at(k));
    return score.derivative;
  }

  // The indices of this query's score for key k.
  ScoreAt<Real> at(std::int64_t k) const {
    ScoreAt<Real> score = at_;
    score.k = k;
    return score;
  }

  // The factor by which elements of query, key or value are multiplied, rounded where the problem
  // says so.
  Real rounded(Real factor) const {
    return problem_.rounds_factors ? Real{BFloat16(static_cast<float>(factor))} : factor;
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
    return detail::position(problem_.scores(), at(k));
  }
  // Computes scale · query for terms that read it.
  void scale_query() {
    scaled_query_.resize(static_cast<std::size_t>(problem_.head_dim()));
    for (std::size_t d = 0; d < scaled_query_.size(); ++d) {
      scaled_query_[d] = problem_.scale * query()[d];
    }
    at_.query = scaled_query_.data();
  }
  void apply_terms(std::size_t k) {
    Real score = capped[k] = scores[k];
    std::size_t applied = 0;
    for (const auto& term : problem_.terms) {
      score = term->apply(score, at_);
      if (++applied == problem_.terms.num_caps()) capped[k] = score;
    }
    modified[k] = score;
  }

  const Problem<Real>& problem_;
  ScoreAt<Real> at_;
  std::vector<Real> scaled_query_;
};

}}}  // namespace heed::v0::reference
