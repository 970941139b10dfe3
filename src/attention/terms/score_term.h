// What may happen to a score between query · key and the softmax: a file for each, in this folder.
#pragma once

#include <cstdint>
#include <string>

#include "attention/kernels/kernels.h"
#include "attention/masks/mask_part.h"
#include "heed/attention_backward.h"
#include "heed/dual.h"

namespace heed::inline v0 {

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
  virtual Real apply(Real score, const detail::ScoreIndex& at) const = 0;
  virtual Dual<Real> apply(Dual<Real> score, const detail::ScoreIndex& at) const = 0;

  // The same for a tile of scores. Where the tile has derivatives, they are multiplied by that of
  // the term.
  virtual void apply_to(const kernels::BasicScoreTile<Real>& tile,
                        const kernels::BasicKernelTable<Real>& table) const = 0;

  // Whether that derivative may be anything but 1. Such terms come before those that learn, so that
  // the gradient of what these add is the gradient of the final score.
  virtual bool has_derivative() const { return false; }

  // What a term learns: the member of AttentionGradients that receives its gradient, of this shape.
  // Null: nothing.
  using Gradient = Tensor<Real> AttentionGradients<Real>::*;
  virtual Gradient gradient() const { return nullptr; }
  virtual Shape gradient_shape() const { return {}; }

  // Adds what one score contributes to that gradient, contiguous at `gradient`.
  virtual void add_gradient(Real /*grad_score*/, const detail::ScoreIndex& /*at*/,
                            Real* /*gradient*/) const {}

  // The same for a tile, [key][width] gradients of scores. A gradient of shape [num_heads, …] is
  // summed in doubles, so many a head, which are added over tasks in their order; 0: the gradient
  // is that of cells, which at most one term of a request has.
  virtual std::int64_t sums_per_head() const { return 0; }
  virtual void add_gradient(const kernels::BasicScoreTile<Real>& /*tile*/,
                            const Real* /*grad_scores*/, const TermSums<Real>& /*sums*/,
                            const kernels::BasicKernelTable<Real>& /*table*/) const {}
};

// A term defined by a formula that is written once for numbers and dual numbers:
// Formula::of(score, at).
template <class Formula, class Real>
class FormulaTerm : public ScoreTerm<Real> {
 public:
  Real apply(Real score, const detail::ScoreIndex& at) const final {
    return static_cast<const Formula&>(*this).of(score, at);
  }
  Dual<Real> apply(Dual<Real> score, const detail::ScoreIndex& at) const final {
    return static_cast<const Formula&>(*this).of(score, at);
  }
};

}  // namespace heed::inline v0
