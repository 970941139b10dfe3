/// Modifications of attention scores, written by the user as ordinary generic lambdas.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

#include "heed/core/config.h"
#include "heed/core/dual.h"

namespace heed { inline namespace v0 {

/// One cell of the score tensor [batch, num_heads, q_len, kv_len]. `q_idx` counts from the start of
/// the sequence: it includes AttentionOptions::query_offset.
struct ScorePosition {
  std::int32_t batch = 0;
  std::int32_t head = 0;
  std::int32_t q_idx = 0;
  std::int32_t kv_idx = 0;
};

namespace detail {

// The loop over a tile of scores that calls a user's function. The user's compiler compiles it,
// mostly for a baseline processor. Therefore it exists once for each instruction set of the
// kernels, and the version of the kernels in use is called: the result depends on the instruction
// set alone. On Windows GCC has the baseline's alone, as it takes vectors of AVX on the stack to be
// aligned, which they are not there (its bug 54412).

// The instruction sets that the tile loop is compiled for.
enum class TileTarget : std::int32_t { kBaseline, kAvx2, kAvx512 };

// A tile of scores that masks and terms change: [keys][width], with a row of attention in every
// column. Columns beyond the last row repeat its head and position, so that a function can be
// called for any cell.
template <class Real>
struct BasicScoreTile {
  Real* scores;        // of key first_key + j and row r at scores[j · width + r]
  std::int32_t width;  // a multiple of the target's lanes
  std::int32_t num_rows;
  std::int32_t first_key;
  std::int32_t begin;  // the function is called for the keys begin ≤ j < end
  std::int32_t end;
  std::int32_t batch;
  const std::int32_t* heads;  // [width], of each row
  const std::int32_t* q_idx;  // [width], positions: query_offset is included
  TileTarget target;
  // [head_dim][width], the query of each row times scale. Null for a user's function.
  const Real* query = nullptr;
  std::int32_t head_dim = 0;
  // Unless null, the derivative of every score with respect to the unmodified one, in the layout of
  // the scores: a function that modifies a score multiplies its derivative.
  Real* derivatives = nullptr;
};
using ScoreTile = BasicScoreTile<float>;

// The innermost loop is one vector long, which compilers turn into vector code even at low
// optimisation: at -O2, GCC vectorises only loops without a remainder. It must not be unrolled
// first. Nothing that a function reads overlaps the scores, which are the library's own memory.
#if defined(__clang__)
// A user's function that cannot be vectorised is no error.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpass-failed"
#define HEED_INDEPENDENT_LANES _Pragma("clang loop vectorize(assume_safety)")
#else
#define HEED_INDEPENDENT_LANES _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#endif

// score = Change::apply(function, score, position) for every score of the tile; if
// Change::kDifferentiates, for the dual number of score and derivative. A small function object is
// copied, so that a store to a score cannot change it.
template <class Change, int kVectorBytes, class Real, class F>
[[gnu::always_inline, gnu::flatten]] inline void tile_loop_inline(const BasicScoreTile<Real>& tile,
                                                                  const F& function) {
  constexpr std::int32_t kLanes = kVectorBytes / sizeof(Real);
  constexpr bool kIsCheap = std::is_trivially_copyable_v<F> && sizeof(F) <= 64;
  const std::conditional_t<kIsCheap, const F, const F&> held = function;
  for (std::int32_t first = 0; first < tile.width; first += kLanes) {
    const std::int32_t* heads = tile.heads + first;
    const std::int32_t* q_idx = tile.q_idx + first;
    for (std::int32_t j = tile.begin; j < tile.end; ++j) {
      const std::int64_t offset = static_cast<std::int64_t>(j) * tile.width + first;
      Real* scores = tile.scores + offset;
      if constexpr (Change::kDifferentiates) {
        Real* derivatives = tile.derivatives + offset;
        HEED_INDEPENDENT_LANES
        for (std::int32_t r = 0; r < kLanes; ++r) {
          const Dual<Real> result =
              Change::apply(held, Dual<Real>(scores[r], derivatives[r]),
                            ScorePosition{tile.batch, heads[r], q_idx[r], tile.first_key + j});
          scores[r] = result.value;
          derivatives[r] = result.derivative;
        }
      } else {
        HEED_INDEPENDENT_LANES
        for (std::int32_t r = 0; r < kLanes; ++r) {
          scores[r] = Change::apply(
              held, scores[r], ScorePosition{tile.batch, heads[r], q_idx[r], tile.first_key + j});
        }
      }
    }
  }
}

#undef HEED_INDEPENDENT_LANES

template <class Change, class Real, class F>
[[gnu::noinline, gnu::flatten]] void tile_loop_baseline(const BasicScoreTile<Real>& tile,
                                                        const F& function) {
  tile_loop_inline<Change, 16>(tile, function);
}

#if defined(__x86_64__) && (defined(__clang__) || !defined(_WIN32))
template <class Change, class Real, class F>
[[gnu::target("avx2,fma"), gnu::noinline, gnu::flatten]] void tile_loop_avx2(
    const BasicScoreTile<Real>& tile, const F& function) {
  tile_loop_inline<Change, 32>(tile, function);
}

// Clang uses 64-byte vectors where allowed; GCC only with prefer-vector-width.
#if defined(__clang__)
#define HEED_TARGET_AVX512 "avx512f,avx512dq,avx512bw,avx512vl"
#else
#define HEED_TARGET_AVX512 "avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512"
#endif

template <class Change, class Real, class F>
[[gnu::target(HEED_TARGET_AVX512), gnu::noinline, gnu::flatten]] void tile_loop_avx512(
    const BasicScoreTile<Real>& tile, const F& function) {
  tile_loop_inline<Change, 64>(tile, function);
}

#undef HEED_TARGET_AVX512
#endif

#if defined(__clang__)
#pragma clang diagnostic pop
#endif

template <class Change, class Real, class F>
void tile_loop(const BasicScoreTile<Real>& tile, const F& function) {
#if defined(__x86_64__) && (defined(__clang__) || !defined(_WIN32))
  if (tile.target == TileTarget::kAvx512) return tile_loop_avx512<Change>(tile, function);
  if (tile.target == TileTarget::kAvx2) return tile_loop_avx2<Change>(tile, function);
#endif
  tile_loop_baseline<Change>(tile, function);
}

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
