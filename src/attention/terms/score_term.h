// What may happen to a score between query · key and the softmax: a file for each, in this folder.
#pragma once

#include <cstdint>
#include <string>

#include "attention/kernels/kernels.h"
#include "attention/masks/mask_part.h"
#include "heed/attention/backward.h"
#include "heed/core/dual.h"

namespace heed { inline namespace v0 {

// Where a task of the backward pass sums the gradient of something that has an element of its own
// for heads, queries or keys: that of head h, query q and key k, counted from the task's first, at
// data + h · head_stride + q · query_stride + k · key_stride.
template <class Real>
struct CellSums {
  Real* data = nullptr;
  std::int64_t head_stride = 0;
  std::int64_t query_stride = 0;
  std::int64_t key_stride = 0;
  std::int64_t first_query = 0;
};

// Where a task sums the gradient of what one term learns.
template <class Real>
struct TermSums {
  std::int64_t first_head = 0;
  double* per_head = nullptr;  // [heads][sums_per_head()], where a term asks for such
  CellSums<Real> cells = {};   // where it sums cells

  double* of_head(std::int64_t head, std::int64_t sums_per_head) const {
    return per_head + (head - first_head) * sums_per_head;
  }
};

// A score by its indices, with its query.
template <class Real>
struct ScoreAt : detail::ScoreIndex {
  const Real* query = nullptr;  // [head_dim], multiplied by scale
};

// One thing that happens to scores. It is immutable: threads share it. Terms are applied in the
// order in which make_terms() lists them.
template <class Real>
class ScoreTerm {
 public:
  ScoreTerm() = default;
  ScoreTerm(const ScoreTerm&) = delete;
  ScoreTerm& operator=(const ScoreTerm&) = delete;
  virtual ~ScoreTerm() = default;

  // As a plan prints it, e.g. "softcap(30)".
  virtual std::string description() const = 0;

  // The score after the term: the definition, which the reference computes. On a dual number it
  // tells the derivative with respect to the score before.
  virtual Real apply(Real score, const ScoreAt<Real>& at) const = 0;
  virtual Dual<Real> apply(Dual<Real> score, const ScoreAt<Real>& at) const = 0;

  // The same for a tile of scores, which has the queries of its rows. Where the tile has
  // derivatives, they are multiplied by that of the term.
  virtual void apply_to(const kernels::BasicScoreTile<Real>& tile,
                        const kernels::BasicKernelTable<Real>& table) const = 0;

  // Whether that derivative may be anything but 1. Such terms come before those that learn, so that
  // the gradient of what these add is the gradient of the final score.
  virtual bool has_derivative() const { return false; }

  // What the term adds to the value of a key for this query, [value_dim]; null: nothing. The output
  // then is Σ weight · (value + added).
  virtual bool adds_to_values() const { return false; }
  virtual const Real* added_value(const detail::ScoreIndex& /*at*/) const { return nullptr; }

  // The same for a tile of weights, after dropout and 0 where a row does not see a key:
  // out[d][r] += Σ weight · added, [value_dim][width].
  virtual void add_to_out(const kernels::BasicScoreTile<Real>& /*weights*/, Real* /*out*/,
                          const kernels::BasicKernelTable<Real>& /*table*/) const {}

  // What a term learns: the member of OptionGradients that receives its gradient, of this shape.
  // Null: nothing.
  using Gradient = Tensor<Real> OptionGradients<Real>::*;
  virtual Gradient gradient() const { return nullptr; }
  virtual Shape gradient_shape() const { return {}; }

  // Adds what one score contributes to that gradient, contiguous at `gradient`.
  virtual void add_gradient(Real /*grad_score*/, const ScoreAt<Real>& /*at*/,
                            Real* /*gradient*/) const {}

  // What one dropped weight contributes to it, of a term that adds to values.
  virtual void add_value_gradient(Real /*weight*/, const detail::ScoreIndex& /*at*/,
                                  const Real* /*grad_out*/, Real* /*gradient*/) const {}

  // The same for a tile, [key][width] gradients of scores. One that is 0 adds nothing, whatever the
  // row's query holds: what a row does not see has gradient 0. A gradient of shape [num_heads, …],
  // or […] where the heads share it, is summed in doubles, so many a head, which are added over
  // tasks in their order; 0: the gradient is that of cells, which at most one term of a request
  // has.
  virtual std::int64_t sums_per_head() const { return 0; }
  virtual void add_gradient(const kernels::BasicScoreTile<Real>& /*tile*/,
                            const Real* /*grad_scores*/, const TermSums<Real>& /*sums*/,
                            const kernels::BasicKernelTable<Real>& /*table*/) const {}

  // The same for a tile of dropped weights, of a term that adds to values: grad_scores[j][r] +=
  // weight · (added · grad_out), and the gradient of what the term learns. grad_out is
  // [value_dim][width].
  virtual void add_value_gradients(const kernels::BasicScoreTile<Real>& /*weights*/,
                                   const Real* /*grad_out*/, Real* /*grad_scores*/,
                                   const TermSums<Real>& /*sums*/,
                                   const kernels::BasicKernelTable<Real>& /*table*/) const {}

  // Whether a user's function wants to see the gradients of the scores that it made, and a tile of
  // them, [key][width]: 0 where a row does not see a key. Terms behind it have derivative 1.
  virtual bool reads_gradient() const { return false; }
  virtual void read_gradient(const kernels::BasicScoreTile<Real>& /*tile*/,
                             const Real* /*grad_scores*/) const {}

  // Whether what is added to a score depends on the query, whose gradient then comes from the term
  // too. Such a term comes after those with a derivative, as one that learns. Over a cache that
  // keeps its keys rotated it would read the query rotated with them: attend() refuses that.
  virtual bool reads_query() const { return false; }

  // Adds what one score contributes to the gradient of its query times scale, [head_dim].
  virtual void add_query_gradient(Real /*grad_score*/, const ScoreAt<Real>& /*at*/,
                                  Real* /*gradient*/) const {}
  // The same for a tile: to [head_dim][width], of its rows.
  virtual void add_query_gradient(const kernels::BasicScoreTile<Real>& /*tile*/,
                                  const Real* /*grad_scores*/, Real* /*gradient*/,
                                  const kernels::BasicKernelTable<Real>& /*table*/) const {}
};

// A term defined by a formula that is written once for numbers and dual numbers:
// Formula::of(score, at).
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
