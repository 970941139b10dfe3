// The running softmax of a panel's rows, a tile of keys at a time.
#if defined(HEED_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_SOFTMAX_INL_H_
#undef HEED_SOFTMAX_INL_H_
#else
#define HEED_SOFTMAX_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "attention/kernels/kernels.h"
#include "attention/kernels/panel/panel-inl.h"
#include "attention/kernels/panel/philox-inl.h"
#include "hwy/highway.h"
#include "simd/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// The largest exponent that leaves m unchanged; above it, m moves to the row's largest score.
constexpr Real kLargestExponent = 30.0F;
// If the weights of a tile sum to at most this, no exponent exceeds kLargestExponent.
constexpr Real kLargestSum = 0x1p30F;

// Turns the scores of a PanelKernel into exponents x = s − m, −infinity where a row does not see
// the key, and finds the largest of each row.
template <int kVectors>
struct Exponents {
  static constexpr bool kFinishes = true;
  static constexpr bool kMakesPairs = false;
  const PanelKernel<kVectors>* kernel;
  const Real* minus_m;
  Vec largest[kVectors];

  HWY_INLINE Exponents(const PanelKernel<kVectors>& k, const Real* m) : kernel(&k), minus_m(m) {
    for (int v = 0; v < kVectors; ++v) largest[v] = hn::Set(kReals, kMinusInfinity);
  }

  HWY_INLINE const Real* start() const { return kernel->start_of_exponent(minus_m); }
  template <bool kMixed>
  HWY_INLINE Vec finish(int v, std::int32_t key, Vec product) {
    Vec exponent = kernel->exponent_of(product, minus_m, v);
    if (kMixed) {
      exponent = hn::IfThenElse(kernel->sees(v, key), exponent, hn::Set(kReals, kMinusInfinity));
    }
    largest[v] = hn::Max(exponent, largest[v]);
    return exponent;
  }
};

// True if every row that will see a key has seen one: the first tile in which a row sees a key
// always moves m.
template <int kVectors>
HWY_INLINE bool has_started(const PanelState& state) {
  bool started = true;
  for (int v = 0; v < kVectors; ++v) {
    const Vec threshold = hn::Load(kReals, state.threshold + v * kLanes);
    started = started && hn::AllTrue(kReals, hn::Ge(threshold, hn::Zero(kReals)));
  }
  return started;
}

// Moves the m of rows whose `largest` exceeds the threshold, and sets `shift` to the distances
// moved. For every vector in which a row moves, calls scale(v, factor) with the factors by which
// sums over earlier keys must be multiplied.
template <int kVectors, class Scale>
HWY_INLINE void move_offsets(const Vec (&largest)[kVectors], PanelState& state,
                             Vec (&shift)[kVectors], const Scale& scale) {
  state.moving = false;
  for (int v = 0; v < kVectors; ++v) {
    Real* minus_m = state.minus_m + v * kLanes;
    Real* threshold_at = state.threshold + v * kLanes;
    const Vec threshold = hn::Load(kReals, threshold_at);
    const auto is_empty = hn::Lt(threshold, hn::Zero(kReals));
    const auto begins = hn::Ge(largest[v], hn::Set(kReals, kLowestStartOf<Real>));
    const auto moves = hn::And(hn::Gt(largest[v], threshold), hn::Or(begins, hn::Not(is_empty)));
    shift[v] = hn::IfThenElseZero(moves, largest[v]);
    if (hn::AllFalse(kReals, moves)) continue;
    hn::Store(hn::Sub(hn::Load(kReals, minus_m), shift[v]), kReals, minus_m);
    hn::Store(hn::IfThenElse(moves, hn::Set(kReals, kLargestExponent), threshold), kReals,
              threshold_at);
    // An empty state is 0, whatever the shift.
    if (hn::AllTrue(kReals, hn::Or(is_empty, hn::Not(moves)))) continue;
    state.moving = true;
    scale(v, hn::IfThenElse(is_empty, hn::Set(kReals, 1.0F), exp2(hn::Neg(shift[v]))));
  }
}

// Multiplies the weights of a kernel's tile by the factors of dropout; marked weights stay.
template <int kVectors>
HWY_INLINE void drop(const PanelKernel<kVectors>& kernel, const PanelOptions& options) {
  if (options.dropout == nullptr) return;
  const std::int32_t first = kernel.begin / 8 * 8;
  const auto drop_some = options.guarded ? drop_weights<true> : drop_weights<false>;
  drop_some(*options.dropout, kernel.tile.first_key + first, kernel.end - first, kernel.kWidth,
            kernel.weights + first * kernel.kWidth);
}

template <int kVectors>
struct SoftmaxKernel {
  using Kernel = PanelKernel<kVectors>;

  const Kernel kernel;
  const PanelOptions& options;
  PanelState& state;

  HWY_INLINE SoftmaxKernel(const Tile& tile, const Panel& panel, Real* weights,
                           const PanelOptions& o, PanelState& s)
      : kernel(tile, panel, weights, tile.fetched.count / 2), options(o), state(s) {}

  HWY_INLINE void attend() const {
    if (kernel.begin >= kernel.end) return;
    const bool pairs = makes_pairs();
    const bool may_fuse = !state.moving && has_started<kVectors>(state);
    if (!may_fuse || !(pairs ? try_fused_weights<kInTiles>() : try_fused_weights<false>())) {
      separate_weights(pairs);
    }
    if (options.guarded && kernel.is_mixed) kernel.replace_unseen(kUnseen);
    drop(kernel, options);
    add_values(pairs);
  }

  // attend() from scores in natural units, which are −infinity where an irregular mask hides a key.
  HWY_INLINE void absorb() const {
    if (kernel.begin >= kernel.end) return;
    Vec largest[kVectors];
    const OfScores exponent_of(state);
    Vec shift[kVectors];
    for (int v = 0; v < kVectors; ++v) largest[v] = hn::Set(kReals, kMinusInfinity);
    if (kernel.is_mixed) kernel.replace_unseen(kMinusInfinity);
    kernel.visit([&](int v, std::int32_t, Real* at)
                     HWY_ATTR { largest[v] = hn::Max(hn::Load(kReals, at), largest[v]); });
    for (int v = 0; v < kVectors; ++v) {
      // Rounding keeps the order: the exponent of the largest score is the largest exponent.
      const Vec exponent = exponent_of(v, largest[v]);
      note_range(v, largest[v], exponent);
      largest[v] = exponent;
    }
    move(largest, shift);
    // With the m that the lse will be made of: rounded at the size of scores, exponents would
    // differ from those of the backward pass.
    for (int v = 0; v < kVectors; ++v) shift[v] = hn::Zero(kReals);
    weigh(shift, OfScores(state), false);
    drop(kernel, options);
    add_values(false);
  }

 private:
  // True if weights become pairs for AMX tiles as soon as they are computed, because nothing
  // changes them before they are multiplied.
  HWY_INLINE bool makes_pairs() const {
    return kInTiles && options.dropout == nullptr && !options.guarded;
  }

  // Turns scores into weights as soon as they are computed, on the assumption that no m moves.
  template <bool kPairs>
  struct FusedWeights {
    static constexpr bool kFinishes = true;
    static constexpr bool kMakesPairs = kPairs;
    const Kernel* kernel;
    const Real* minus_m;
    Vec tile_sum[kVectors];

    HWY_INLINE FusedWeights(const Kernel& k, const Real* m) : kernel(&k), minus_m(m) {
      for (int v = 0; v < kVectors; ++v) tile_sum[v] = hn::Zero(kReals);
    }

    HWY_INLINE const Real* start() const { return kernel->start_of_exponent(minus_m); }
    template <bool kMixed>
    HWY_INLINE Vec finish(int v, std::int32_t key, Vec product) {
      Vec weight = exp2(kernel->exponent_of(product, minus_m, v));
      if (kMixed) weight = hn::IfThenElseZero(kernel->sees(v, key), weight);
      tile_sum[v] = hn::Add(tile_sum[v], weight);
      return weight;
    }
  };

  // Returns true if the weights are valid; otherwise only `weights` was changed.
  template <bool kPairs>
  HWY_INLINE bool try_fused_weights() const {
    FusedWeights<kPairs> fused(kernel, state.minus_m);
    kernel.score(fused);
    bool fits = true;
    for (int v = 0; v < kVectors; ++v) {
      fits = fits && hn::AllTrue(kReals, hn::Le(fused.tile_sum[v], hn::Set(kReals, kLargestSum)));
    }
    if (fits) add_to_sum(fused.tile_sum);
    return fits;
  }

  HWY_INLINE void separate_weights(bool pairs) const {
    Exponents<kVectors> exponents(kernel, state.minus_m);
    Vec shift[kVectors];
    kernel.score(exponents);
    move(exponents.largest, shift);
    weigh(shift, OfExponents(), pairs);
  }

  HWY_INLINE void move(const Vec (&largest)[kVectors], Vec (&shift)[kVectors]) const {
    move_offsets(largest, state, shift, [&](int v, Vec factor) HWY_ATTR {
      kernel.store(hn::Mul(kernel.load(state.sum, v), factor), state.sum, v);
      for (std::int32_t d = 0; d < kernel.panel.value_dim; ++d) {
        Real* out = state.out + d * kernel.kWidth;
        kernel.store(hn::Mul(kernel.load(out, v), factor), out, v);
      }
    });
  }

  // The numbers in the tile from which weights are computed where m may move: exponents, or scores
  // in natural units.
  struct OfExponents {
    HWY_INLINE Vec operator()(int, Vec exponent) const { return exponent; }
  };
  struct OfScores {
    Vec minus_m[kVectors];

    HWY_INLINE explicit OfScores(const PanelState& state) {
      for (int v = 0; v < kVectors; ++v) minus_m[v] = Kernel::load(state.minus_m, v);
    }
    HWY_INLINE Vec operator()(int v, Vec score) const {
      return exponent_of_score(score, minus_m[v]);
    }
  };

  template <bool kGuarded, class ExponentOf>
  struct SeparateWeights {
    ExponentOf exponent_of;
    Vec shift[kVectors];
    Vec tile_sum[kVectors];

    template <bool kMixed>
    HWY_INLINE Vec finish(int v, std::int32_t, Vec number) {
      const Vec exponent = exponent_of(v, number);
      const Vec weight = exp2(hn::Sub(exponent, shift[v]));
      tile_sum[v] = hn::Add(tile_sum[v], weight);
      if (!kGuarded) return weight;
      const auto is_hidden = hn::Eq(exponent, hn::Set(kReals, kMinusInfinity));
      return hn::IfThenElse(is_hidden, hn::Set(kReals, kUnseen), weight);
    }
  };

  // weights[key] = 2^(exponent − shift) with exponent = exponent_of(v, weights[key]), or pairs of
  // these weights.
  template <class ExponentOf>
  HWY_INLINE void weigh(const Vec (&shift)[kVectors], const ExponentOf& exponent_of,
                        bool pairs) const {
    if (options.guarded) {
      weigh_with(SeparateWeights<true, ExponentOf>{exponent_of, {}, {}}, shift, pairs);
    } else {
      weigh_with(SeparateWeights<false, ExponentOf>{exponent_of, {}, {}}, shift, pairs);
    }
  }
  template <class Separate>
  HWY_INLINE void weigh_with(Separate separate, const Vec (&shift)[kVectors], bool pairs) const {
    for (int v = 0; v < kVectors; ++v) {
      separate.shift[v] = shift[v];
      separate.tile_sum[v] = hn::Zero(kReals);
    }
    if (pairs) {
      kernel.finish_in_pairs(separate);
    } else {
      kernel.finish(separate);
    }
    add_to_sum(separate.tile_sum);
  }

  HWY_INLINE void add_to_sum(const Vec (&tile_sum)[kVectors]) const {
    for (int v = 0; v < kVectors; ++v) {
      kernel.store(hn::Add(kernel.load(state.sum, v), tile_sum[v]), state.sum, v);
    }
  }

  HWY_INLINE void add_values(bool are_pairs) const {
    const std::int32_t columns = kernel.panel.value_dim;
    if (kernel.has_quantised_values()) {
      kernel.add_quantised_values(state.out);
    } else if (!options.guarded) {
      kernel.template add_values<false>(kernel.over_keys(0, kernel.weights, are_pairs), columns,
                                        state.out);
    } else {
      kernel.template add_values<true>(kernel.over_keys(kUnseen, kernel.weights, are_pairs),
                                       columns, state.out);
    }
  }

  // Marks rows that have so far seen only scores with which they cannot begin.
  HWY_INLINE void note_range(int v, Vec score, Vec exponent) const {
    const Vec hidden = hn::Set(kReals, kMinusInfinity);
    const auto is_beyond =
        hn::And(hn::Lt(exponent, hn::Set(kReals, kLowestStartOf<Real>)), hn::Gt(score, hidden));
    if (HWY_LIKELY(hn::AllFalse(kReals, is_beyond))) return;
    const Vec threshold = kernel.load(state.threshold, v);
    const auto marked = hn::And(is_beyond, hn::Eq(threshold, hidden));
    kernel.store(hn::IfThenElse(marked, hn::Set(kReals, kBeyondRangeOf<Real>), threshold),
                 state.threshold, v);
  }

  static HWY_INLINE Vec exponent_of_score(Vec score, Vec minus_m) {
    return hn::MulAdd(score, hn::Set(kReals, Constants<Real>::kLog2E), minus_m);
  }
};

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_SOFTMAX_INL_H_
