// The interface of the terms that change a score between query · key and the softmax. Each has a
// file in this folder.
#pragma once

#include <cstdint>
#include <string>

#include "attention/kernels/score_loops.h"
#include "attention/masks/mask_part.h"
#include "heed/attention/backward.h"
#include "heed/core/dual.h"

namespace heed { inline namespace v0 {

// The sums of one task of the backward pass for a gradient with an element of its own for heads,
// queries or keys (a *cell*). The element of head h, query q and key k, counted from the first of
// the task, is at data + h · head_stride + q · query_stride + k · key_stride.
template <class Real>
struct CellSums {
  Real* data = nullptr;
  std::int64_t head_stride = 0;
  std::int64_t query_stride = 0;
  std::int64_t key_stride = 0;
  std::int64_t first_query = 0;
};

// The sums of one task for the gradient of one term.
template <class Real>
struct TermSums {
  std::int64_t first_head = 0;
  double* per_head = nullptr;  // [heads][sums_per_head()], for a term with sums per head
  CellSums<Real> cells = {};   // for a term with cells

  double* of_head(std::int64_t head, std::int64_t sums_per_head) const {
    return per_head + (head - first_head) * sums_per_head;
  }
};

// The indices of a score, with its query.
template <class Real>
struct ScoreAt : detail::ScoreIndex {
  const Real* query = nullptr;  // [head_dim], multiplied by scale
};

// One term. It is immutable, as threads share it. Terms are applied in the order of make_terms().
template <class Real>
class ScoreTerm {
 public:
  ScoreTerm() = default;
  ScoreTerm(const ScoreTerm&) = delete;
  ScoreTerm& operator=(const ScoreTerm&) = delete;
  virtual ~ScoreTerm() = default;

  // The term as a plan prints it, e.g. "softcap(30)".
  virtual std::string description() const = 0;

  // Returns the score after the term. This is the definition; the reference computes it. With a
  // dual number it also gives the derivative with respect to the score before the term.
  virtual Real apply(Real score, const ScoreAt<Real>& at) const = 0;
  virtual Dual<Real> apply(Dual<Real> score, const ScoreAt<Real>& at) const = 0;

  // Applies the term to a tile of scores, which has the queries of its rows. If the tile has
  // derivatives, multiplies them by that of the term.
  virtual void apply_to(const kernels::BasicScoreTile<Real>& tile,
                        const kernels::BasicScoreLoops<Real>& loops) const = 0;

  // True if that derivative may be anything but 1. Such terms come before terms with a gradient, so
  // that the gradient of what the latter add is the gradient of the final score.
  virtual bool has_derivative() const { return false; }

  // True if the term adds a vector to the value of a key, depending on the query: the output is Σ
  // weight · (value + added). added_value() is that vector, [value_dim], or null for none.
  virtual bool adds_to_values() const { return false; }
  virtual const Real* added_value(const detail::ScoreIndex& /*at*/) const { return nullptr; }

  // Does so for a tile: out[d][r] += Σ weight · added, [value_dim][width]. Weights are those after
  // dropout, and 0 where a row does not see a key.
  virtual void add_to_out(const kernels::BasicScoreTile<Real>& /*weights*/, Real* /*out*/,
                          const kernels::BasicScoreLoops<Real>& /*loops*/) const {}

  // The member of OptionGradients that receives the term's gradient, which has shape
  // gradient_shape(); null for a term without gradient.
  using Gradient = Tensor<Real> OptionGradients<Real>::*;
  virtual Gradient gradient() const { return nullptr; }
  virtual Shape gradient_shape() const { return {}; }

  // Adds the contribution of one score to that gradient, contiguous at `gradient`.
  virtual void add_gradient(Real /*grad_score*/, const ScoreAt<Real>& /*at*/,
                            Real* /*gradient*/) const {}

  // Adds the contribution of one weight after dropout, for a term that adds to values.
  virtual void add_value_gradient(Real /*weight*/, const detail::ScoreIndex& /*at*/,
                                  const Real* /*grad_out*/, Real* /*gradient*/) const {}

  // add_gradient() for a tile: grad_scores are [key][width]. A score whose gradient is 0 adds
  // nothing, whatever its query is: keys that a row does not see have gradient 0. A gradient of
  // shape [num_heads, …], or […] if all heads share it, is summed in doubles, sums_per_head() for
  // each head, and the sums of tasks are added in the order of tasks. If sums_per_head() is 0, the
  // gradient consists of cells; at most one term of a request has cells.
  virtual std::int64_t sums_per_head() const { return 0; }
  virtual void add_gradient(const kernels::BasicScoreTile<Real>& /*tile*/,
                            const Real* /*grad_scores*/, const TermSums<Real>& /*sums*/,
                            const kernels::BasicScoreLoops<Real>& /*loops*/) const {}

  // add_value_gradient() for a tile of weights after dropout, for a term that adds to values:
  // grad_scores[j][r] += weight · (added · grad_out), and the term's gradient. grad_out is
  // [value_dim][width].
  virtual void add_value_gradients(const kernels::BasicScoreTile<Real>& /*weights*/,
                                   const Real* /*grad_out*/, Real* /*grad_scores*/,
                                   const TermSums<Real>& /*sums*/,
                                   const kernels::BasicScoreLoops<Real>& /*loops*/) const {}

  // True if a user's function reads the gradients of the scores that it returned; read_gradient()
  // gives it a tile of them, [key][width], 0 where a row does not see a key. Later terms have
  // derivative 1.
  virtual bool reads_gradient() const { return false; }
  virtual void read_gradient(const kernels::BasicScoreTile<Real>& /*tile*/,
                             const Real* /*grad_scores*/) const {}

  // True if the term adds something to a score that depends on the query, so that it also
  // contributes to the gradient of the query. Like terms with a gradient, it comes after those with
  // a derivative. attend() refuses it for a cache of rotated keys, where it would read the rotated
  // query.
  virtual bool reads_query() const { return false; }

  // Adds the contribution of one score to the gradient of scale · query, [head_dim].
  virtual void add_query_gradient(Real /*grad_score*/, const ScoreAt<Real>& /*at*/,
                                  Real* /*gradient*/) const {}
  // Does so for a tile, to the gradients of its rows, [head_dim][width].
  virtual void add_query_gradient(const kernels::BasicScoreTile<Real>& /*tile*/,
                                  const Real* /*grad_scores*/, Real* /*gradient*/,
                                  const kernels::BasicScoreLoops<Real>& /*loops*/) const {}
};

// A term whose formula, Formula::of(score, at), is written once for numbers and dual numbers.
template <class Formula, class Real>
class FormulaTerm : public ScoreTerm<Real> {
 public:
  Real apply(Real score, const ScoreAt<Real>& at) const final {
    return static_cast<const Formula&>(*this).of(score, at);
  }
  Dual<Real> apply(Dual<Real> score, const ScoreAt<Real>& at) const final {
    return static_cast<const Formula&>(*this).of(score, at);
  }
};

}}  // namespace heed::v0
