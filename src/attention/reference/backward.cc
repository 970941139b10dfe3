#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "attention/reference/arithmetic.h"
#include "attention/reference/passes.h"
#include "attention/reference/row.h"
#include "attention/request/gradient_tensors.h"
#include "core/float_environment.h"
#include "heed/attention/reference.h"
#include "heed/core/elementary.h"

namespace heed { inline namespace v0 { namespace reference {

namespace {

// The gradients of attention, summed query by query: the steps of the forward pass in reverse.
template <class Real>
class Backward {
 public:
  Backward(const Problem<Real>& problem, TensorView<const Real> grad_out, RowRange batches)
      : problem_(problem),
        grad_out_(grad_out),
        batches_(batches),
        row_(problem),
        grad_weights_(static_cast<std::size_t>(problem.shape.kv_len)),
        grad_masked_(grad_weights_.size()),
        grad_scaled_(static_cast<std::size_t>(problem.head_dim())),
        gradients_{make_option_gradients<Real>(problem), zeros_like(problem.query),
                   zeros_like(problem.key), zeros_like(problem.value)} {}

  Gradients<Real> run() && {
    const ScoreShape& shape = problem_.scores();
    for (at_.batch = batches_.begin; at_.batch < batches_.end; ++at_.batch)
      for (at_.head = 0; at_.head < shape.num_heads; ++at_.head)
        for (at_.q = 0; at_.q < shape.q_len; ++at_.q) add_query();
    return std::move(gradients_);
  }

 private:
  Tensor<Real> zeros_like(TensorView<const Real> view) const {
    return Tensor<Real>(
        {batches_.end - batches_.begin, view.extent(1), view.extent(2), view.extent(3)});
  }

  Real* gradient_row(Tensor<Real>& gradient, std::int64_t head, std::int64_t row) const {
    return row_pointer(gradient.view(), at_.batch - batches_.begin, head, row);
  }

  void add_query() {
    row_.compute(at_.batch, at_.head, at_.q);
    of_rounded_weights_ = 0;
    for_each_seen_key([&](std::int64_t k) { add_value_and_weight(k); });
    const Real sum = through_softmax();
    // The sink is one more logit. It has no value, so its grad_weight is 0.
    if (problem_.sinks)
      gradients_.sinks(at_.head) -= elementary::exp(*row_.sink() - row_.lse) * sum;
    for_each_seen_key([&](std::int64_t k) { add_score(k); });
    if (problem_.terms.read_query()) add_scaled_query();
  }

  // The backward pass of the softmax. Returns Σ weights · grad_weights, which equals grad_out ·
  // out; if `out` was summed from rounded weights, returns grad_out · out of that `out`.
  Real through_softmax() {
    if (!problem_.rounds_factors) {
      return softmax_backward_row<Real>(grad_weights_, row_.weights, grad_masked_);
    }
    softmax_backward_row<Real>(grad_weights_, row_.weights, of_rounded_weights_, grad_masked_);
    return of_rounded_weights_;
  }

  // out = Σ_k weights[k] · dropout[k] · (value[k] + what terms add to it)
  void add_value_and_weight(std::int64_t k) {
    const auto i = static_cast<std::size_t>(k);
    const Real* grad_out = row_pointer(grad_out_, at_.batch, at_.head, at_.q);
    Real* grad_value = gradient_row(gradients_.value, row_.kv_head(), k);
    const Real weight = row_.rounded(row_.dropped[i]);
    for (std::int64_t d = 0; d < problem_.value_dim(); ++d) grad_value[d] += weight * grad_out[d];
    Real grad_weight = dot(grad_out, row_.value(k), problem_.value_dim());
    for (const auto& term : problem_.terms) {
      if (!term->adds_to_values()) continue;
      grad_weight += dot(grad_out, term->added_value(row_.at(k)), problem_.value_dim());
      term->add_value_gradient(row_.dropped[i], row_.at(k), grad_out,
                               (gradients_.*term->gradient()).data());
    }
    grad_weights_[i] = row_.dropout_factor(k) * grad_weight;
    of_rounded_weights_ += weight * grad_weight;
  }

  // masked = terms(scale · query · key). Numbers that terms add do not change the derivative.
  void add_score(std::int64_t k) {
    const Real grad_masked = grad_masked_[static_cast<std::size_t>(k)];
    if (grad_masked == 0) return;
    const ScoreAt<Real> at = row_.at(k);
    for (const auto& term : problem_.terms) {
      if (term->gradient() != nullptr) {
        term->add_gradient(grad_masked, at, (gradients_.*term->gradient()).data());
      }
      if (term->reads_gradient()) read_gradient(*term, grad_masked, at);
      if (term->reads_query()) term->add_query_gradient(grad_masked, at, grad_scaled_.data());
    }
    const Real grad_dot = row_.rounded(problem_.scale * grad_masked * row_.score_derivative(k));
    const Real* query = row_.query();
    const Real* key = row_.key(k);
    Real* grad_query = gradient_row(gradients_.query, at_.head, at_.q);
    Real* grad_key = gradient_row(gradients_.key, row_.kv_head(), k);
    for (std::int64_t d = 0; d < problem_.head_dim(); ++d) {
      grad_query[d] += grad_dot * key[d];
      grad_key[d] += grad_dot * query[d];
    }
  }

  // Gives the term the gradient as a tile of one score.
  void read_gradient(const ScoreTerm<Real>& term, Real grad_masked,
                     const detail::ScoreIndex& at) const {
    const ScorePosition position = detail::position(problem_.scores(), at);
    Real score = 0;
    term.read_gradient({.scores = &score,
                        .width = 1,
                        .num_rows = 1,
                        .first_key = position.kv_idx,
                        .begin = 0,
                        .end = 1,
                        .batch = position.batch,
                        .heads = &position.head,
                        .q_idx = &position.q_idx,
                        .target = detail::TileTarget::kBaseline},
                       &grad_masked);
  }

  // Adds the gradient that terms contributed to scale · query to that of the query.
  void add_scaled_query() {
    Real* grad_query = gradient_row(gradients_.query, at_.head, at_.q);
    for (std::size_t d = 0; d < grad_scaled_.size(); ++d) {
      grad_query[d] += problem_.scale * std::exchange(grad_scaled_[d], 0);
    }
  }

  template <class Visit>
  void for_each_seen_key(Visit visit) {
    for (std::int64_t k = 0; k < problem_.shape.kv_len; ++k) {
      if (is_seen(row_.masked[static_cast<std::size_t>(k)])) visit(k);
    }
  }

  const Problem<Real>& problem_;
  TensorView<const Real> grad_out_;
  RowRange batches_;
  Row<Real> row_;
  std::vector<Real> grad_weights_;
  Real of_rounded_weights_ = 0;  // grad_out · out, with out summed from rounded weights
  std::vector<Real> grad_masked_;
  std::vector<Real> grad_scaled_;  // of scale · query, from terms
  Gradients<Real> gradients_;
  detail::ScoreIndex at_{};
};

template <class Real>
Gradients<Real> check_and_compute(TensorView<const Real> grad_out, TensorView<const Real> query,
                                  TensorView<const Real> key, TensorView<const Real> value,
                                  const BasicAttentionOptions<Real>& options) {
  const FloatEnvironment environment;
  constexpr const char* kFunction = "attention_backward";
  const Problem<Real> problem = check_attention(kFunction, query, key, value, options);
  check_tensor(kFunction, "grad_out", grad_out,
               {query.extent(0), query.extent(1), query.extent(2), value.extent(3)});
  return backward(problem, grad_out, {0, problem.shape.batch});
}

}  // namespace

template <class Real>
Gradients<Real> backward(const Problem<Real>& problem, TensorView<const Real> grad_out,
                         RowRange batches) {
  return Backward<Real>(problem, grad_out, batches).run();
}

template Gradients<float> backward(const Problem<float>&, FloatView, RowRange);
template Gradients<double> backward(const Problem<double>&, DoubleView, RowRange);

Gradients<float> attention_backward(FloatView grad_out, FloatView query, FloatView key,
                                    FloatView value, const AttentionOptions& options) {
  const FloatEnvironment environment;
  return check_and_compute(grad_out, query, key, value, options);
}

Gradients<float> attention_backward(BFloat16View grad_out, BFloat16View query, BFloat16View key,
                                    BFloat16View value, const AttentionOptions& options) {
  const FloatEnvironment environment;
  const Floats numbers("attention_backward", query, key, value);
  const auto problem = numbers.problem("attention_backward", options);
  check_tensor("attention_backward", "grad_out", grad_out,
               {query.extent(0), query.extent(1), query.extent(2), value.extent(3)});
  const auto grads = converted<float>(grad_out);
  return backward<float>(problem, grads, {0, problem.shape.batch});
}

Gradients<double> attention_backward(DoubleView grad_out, DoubleView query, DoubleView key,
                                     DoubleView value, const AttentionOptions64& options) {
  const FloatEnvironment environment;
  return check_and_compute(grad_out, query, key, value, options);
}

}}}  // namespace heed::v0::reference
