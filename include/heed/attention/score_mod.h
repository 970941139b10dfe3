/// Modifications of attention scores, written by the user as ordinary generic lambdas.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "heed/attention/score_position.h"
#include "heed/attention/tile_loop.h"
#include "heed/core/config.h"
#include "heed/core/dual.h"

namespace heed { inline namespace v0 {

namespace detail {

// The interface through which the library calls a user's score modification.
class HEED_API ScoreFunction {
 public:
  virtual ~ScoreFunction();
  virtual float apply(float score, const ScorePosition& at) const = 0;
  virtual double apply(double score, const ScorePosition& at) const = 0;
  virtual Dual<float> apply(Dual<float> score, const ScorePosition& at) const = 0;
  virtual Dual<double> apply(Dual<double> score, const ScorePosition& at) const = 0;
  // Applies the function to every score of a tile, and multiplies the derivatives, if there are
  // any. The version for double calls apply() for one score after the other unless overridden.
  virtual void apply_to(const ScoreTile& tile) const = 0;
  virtual void apply_to(const BasicScoreTile<double>& tile) const;

  // True if learn() is to be called: a function from another language may have parameters of its
  // own, whose gradients it computes itself.
  virtual bool learns() const { return false; }
  // Receives the gradients of a tile's modified scores, [keys][width] at grad_scores; 0 where a row
  // does not see a key. Row r is query q_idx[r] − query_offset. Called once for each score of a
  // backward pass, from any thread.
  virtual void learn(const ScoreTile& tile, const float* grad_scores,
                     std::int64_t query_offset) const;
  virtual void learn(const BasicScoreTile<double>& tile, const double* grad_scores,
                     std::int64_t query_offset) const;
};

struct ModifyScore {
  static constexpr bool kDifferentiates = false;
  template <class F, class Real>
  [[gnu::always_inline, gnu::flatten]] static Real apply(const F& function, Real score,
                                                         const ScorePosition& at) {
    return static_cast<Real>(function(score, at.batch, at.head, at.q_idx, at.kv_idx));
  }
};

struct DifferentiateScore {
  static constexpr bool kDifferentiates = true;
  template <class F, class Real>
  [[gnu::always_inline, gnu::flatten]] static Dual<Real> apply(const F& function, Dual<Real> score,
                                                               const ScorePosition& at) {
    return static_cast<Dual<Real>>(function(score, at.batch, at.head, at.q_idx, at.kv_idx));
  }
};

template <class F>
class ScoreFunctionOf final : public ScoreFunction {
 public:
  explicit ScoreFunctionOf(F function) : function_(std::move(function)) {}
  float apply(float score, const ScorePosition& at) const override { return call(score, at); }
  double apply(double score, const ScorePosition& at) const override { return call(score, at); }
  Dual<float> apply(Dual<float> score, const ScorePosition& at) const override {
    return call(score, at);
  }
  Dual<double> apply(Dual<double> score, const ScorePosition& at) const override {
    return call(score, at);
  }
  void apply_to(const ScoreTile& tile) const override { modify(tile); }
  void apply_to(const BasicScoreTile<double>& tile) const override { modify(tile); }

 private:
  template <class Real>
  void modify(const BasicScoreTile<Real>& tile) const {
    if (tile.derivatives != nullptr) return tile_loop<DifferentiateScore>(tile, function_);
    tile_loop<ModifyScore>(tile, function_);
  }

  template <class Score>
  Score call(Score score, const ScorePosition& at) const {
    return static_cast<Score>(function_(score, at.batch, at.head, at.q_idx, at.kv_idx));
  }

  F function_;
};

template <class F, class Score>
concept CallableOnScore = requires(const F& function, Score score, std::int32_t index) {
  { function(score, index, index, index, index) } -> std::convertible_to<Score>;
};

// A function of numbers that does not accept dual numbers.
template <class F>
concept PlainScoreLambda = CallableOnScore<F, double> && !CallableOnScore<F, Dual<double>>;

template <class F>
concept ScoreLambda = CallableOnScore<F, double> && CallableOnScore<F, Dual<double>>;

}  // namespace detail

/// score_mod(score, b, h, q_idx, kv_idx) → score, applied after the softcap and before bias and
/// mask.
///
///     options.score_mod = [](auto score, int b, int h, int q_idx, int kv_idx) {
///       return score - 0.5F * heed::abs(float(q_idx - kv_idx));
///     };
///
/// The function must be generic in the score (`auto`): the backward pass calls it with dual
/// numbers, so no derivative is written by hand. It must not throw, and must return the same result
/// for the same arguments; variables captured by reference must outlive the call, and receive no
/// gradient.
class ScoreMod {
 public:
  /// Leaves scores as they are.
  ScoreMod() = default;

  /// Implicit, so that a lambda can be assigned.
  template <detail::ScoreLambda F>
  ScoreMod(F function)  // NOLINT(google-explicit-constructor)
      : function_(std::make_shared<detail::ScoreFunctionOf<F>>(std::move(function))) {}

  /// A function of numbers alone: does not compile; the error names the remedy.
  template <detail::PlainScoreLambda F>
  ScoreMod(const F&) {  // NOLINT(google-explicit-constructor)
    static_assert(detail::kNever<F>, "a score modification is generic: write `auto score`");
  }

  /// For bindings of other languages: a function that modifies whole tiles.
  explicit ScoreMod(std::shared_ptr<const detail::ScoreFunction> function)
      : function_(std::move(function)) {}

  /// True if there is a function to apply.
  explicit operator bool() const noexcept { return function_ != nullptr; }

  template <class Score>
  Score operator()(Score score, const ScorePosition& at) const {
    return function_ == nullptr ? score : function_->apply(score, at);
  }

  /// Internal: applies the function to a tile of scores.
  template <class Real>
  void apply_to(const detail::BasicScoreTile<Real>& tile) const {
    if (function_ != nullptr) function_->apply_to(tile);
  }

  /// Internal: whether the function takes gradients, and the call that passes those of a tile.
  bool learns() const { return function_ != nullptr && function_->learns(); }
  template <class Real>
  void learn(const detail::BasicScoreTile<Real>& tile, const Real* grad_scores,
             std::int64_t query_offset) const {
    function_->learn(tile, grad_scores, query_offset);
  }

 private:
  std::shared_ptr<const detail::ScoreFunction> function_;
};

}}  // namespace heed::v0
