// The panel kernels, compiled once for each instruction set.
#if defined(HEED_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_PANEL_INL_H_
#undef HEED_PANEL_INL_H_
#else
#define HEED_PANEL_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <limits>

#include "attention/kernels/exp2-inl.h"
#include "attention/kernels/kernels.h"
#include "attention/kernels/philox-inl.h"
#include "attention/kernels/register_block-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed::inline v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// An exponent up to here leaves m where it is; above it, m moves to the row's largest score.
constexpr Real kLargestExponent = 30.0F;
// A tile whose weights sum to at most this has no exponent above kLargestExponent.
constexpr Real kLargestSum = 0x1p30F;
constexpr Real kMinusInfinity = -std::numeric_limits<Real>::infinity();

template <int kVectors>
struct PanelKernel {
  static constexpr int kWidth = kVectors * kLanes;

  const Tile& tile;
  Panel& panel;
  Real* HWY_RESTRICT weights;  // [kTileKeys][kWidth]
  // The keys of the tile that any row sees, and whether some row does not see all of these.
  std::int32_t begin;
  std::int32_t end;
  bool is_mixed;
  // These keys in parts, each seen by other vectors of rows: no more than their begins and ends.
  std::int32_t num_segments = 1;
  Segment segments[2 * kVectors + 1];
  // The rows' ranges, counted from the tile's first key; only of interest where it is mixed.
  Vec row_begin[kVectors];
  Vec row_end[kVectors];

  HWY_INLINE PanelKernel(const Tile& t, Panel& p, Real* w) : tile(t), panel(p), weights(w) {
    begin = std::max(panel.any_begin - tile.first_key, 0);
    end = std::min(panel.any_end - tile.first_key, tile.num_keys);
    is_mixed = panel.all_begin > tile.first_key + begin || panel.all_end < tile.first_key + end;
    segments[0] = {begin, end, 0, kVectors};
    if (is_mixed) find_segments();
    for (int v = 0; v < kVectors; ++v) {
      row_begin[v] = is_mixed ? relative(panel.begin + v * kLanes) : hn::Zero(kReals);
      row_end[v] = is_mixed ? relative(panel.end + v * kLanes) : hn::Zero(kReals);
    }
  }

  // Cuts the keys where a vector of rows begins or ends to see, in steps of a register block.
  HWY_INLINE void find_segments() {
    std::int32_t vector_begin[kVectors];
    std::int32_t vector_end[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      const std::int32_t from = std::max(panel.vector_begin[v] - tile.first_key - begin, 0);
      const std::int32_t to = panel.vector_end[v] - tile.first_key - begin + kBlock - 1;
      vector_begin[v] = begin + from / kBlock * kBlock;
      vector_end[v] = std::min(begin + to / kBlock * kBlock, end);
    }
    num_segments = 0;
    for (std::int32_t key = begin; key < end;) {
      Segment segment{key, end, kVectors, 0};
      std::int32_t last = -1;
      for (int v = 0; v < kVectors; ++v) {
        if (vector_begin[v] > key) {
          segment.end = std::min(segment.end, vector_begin[v]);
        } else if (vector_end[v] > key) {
          segment.end = std::min(segment.end, vector_end[v]);
          segment.first_vector = std::min(segment.first_vector, v);
          last = v;
        }
      }
      key = segment.end;
      segment.num_vectors = last + 1 - segment.first_vector;
      if (last >= 0) segments[num_segments++] = segment;
    }
  }

  // Positions as floats relative to the tile, in which form they compare fastest. Clamping keeps
  // them exact.
  HWY_INLINE Vec relative(const std::int32_t* positions) const {
    const Indices integers;
    const auto difference =
        hn::Sub(hn::LoadU(integers, positions), hn::Set(integers, tile.first_key));
    return to_reals(
        hn::Min(hn::Max(difference, hn::Set(integers, -1)), hn::Set(integers, kTileKeys + 1)));
  }

  HWY_INLINE hn::Mask<Reals> sees(int v, std::int32_t key) const {
    const Vec at = hn::Set(kReals, static_cast<Real>(key));
    return hn::And(hn::Ge(at, row_begin[v]), hn::Lt(at, row_end[v]));
  }

  template <class Use, int kFirst, int kCount>
  struct ScoreBlock {
    const PanelKernel& kernel;
    const Use& use;

    // Scores of kRows keys from `key` on, on top of what use.start gives.
    template <int kRows>
    HWY_INLINE void run(std::int32_t key) const {
      Vec sums[kRows][kVectors];
      for (int i = 0; i < kRows; ++i)
        for (int v = kFirst; v < kFirst + kCount; ++v) sums[i][v] = use.start(v);
      const Operand keys{kernel.tile.key + key * kernel.tile.key_stride, kernel.tile.key_stride, 1};
      multiply_add<1, kFirst, kCount>(keys, kernel.panel.query, kernel.panel.head_dim, sums);
      Real* HWY_RESTRICT block = kernel.weights + key * kWidth;
      for (int i = 0; i < kRows; ++i)
        for (int v = kFirst; v < kFirst + kCount; ++v)
          kernel.store(sums[i][v], block + i * kWidth, v);
      if constexpr (Use::kFinishes) {
        // A loop of its own, over memory that is in the nearest cache: finished right in registers,
        // the sums would have to share them with the constants of the exponential, and be spilled.
        for (int i = 0; i < kRows; ++i) {
          for (int v = kFirst; v < kFirst + kCount; ++v) {
            Real* row = block + i * kWidth;
            kernel.store(use.finish(v, key + i, kernel.load(row, v)), row, v);
          }
        }
      }
    }
  };

  template <class Use>
  struct ScoreSegment {
    const PanelKernel& kernel;
    const Use& use;

    template <int kFirst, int kCount>
    HWY_INLINE void run(const Segment& segment) const {
      for_each_block(segment.begin, segment.end, ScoreBlock<Use, kFirst, kCount>{kernel, use});
    }
  };

  template <class Use>
  HWY_INLINE void score(const Use& use) const {
    for (std::int32_t i = 0; i < num_segments; ++i) {
      with_vectors<kVectors>(segments[i], ScoreSegment<Use>{*this, use});
    }
  }

  HWY_INLINE Vec load(const Real* array, int v) const {
    return hn::Load(kReals, array + v * kLanes);
  }
  HWY_INLINE void store(Vec x, Real* array, int v) const {
    hn::Store(x, kReals, array + v * kLanes);
  }

  // The scores become weights right in the register block, in the hope that no m must move.
  struct FusedWeights {
    static constexpr bool kFinishes = true;
    const PanelKernel& kernel;
    Vec (&tile_sum)[kVectors];

    HWY_INLINE Vec start(int v) const { return kernel.load(kernel.panel.state.minus_m, v); }
    HWY_INLINE Vec finish(int v, std::int32_t key, Vec exponent) const {
      Vec weight = exp2(exponent);
      if (kernel.is_mixed) weight = hn::IfThenElseZero(kernel.sees(v, key), weight);
      tile_sum[v] = hn::Add(tile_sum[v], weight);
      return weight;
    }
  };

  // Returns whether the weights stand; otherwise nothing but `weights` was touched.
  HWY_INLINE bool try_fused_weights() {
    Vec tile_sum[kVectors];
    for (int v = 0; v < kVectors; ++v) tile_sum[v] = hn::Zero(kReals);
    score(FusedWeights{*this, tile_sum});
    bool fits = true;
    for (int v = 0; v < kVectors; ++v) {
      fits = fits && hn::AllTrue(kReals, hn::Le(tile_sum[v], hn::Set(kReals, kLargestSum)));
    }
    if (!fits) return false;
    for (int v = 0; v < kVectors; ++v) {
      store(hn::Add(load(panel.state.sum, v), tile_sum[v]), panel.state.sum, v);
    }
    return true;
  }

  struct Exponents {
    static constexpr bool kFinishes = true;
    const PanelKernel& kernel;
    Vec (&largest)[kVectors];

    HWY_INLINE Vec start(int v) const { return kernel.load(kernel.panel.state.minus_m, v); }
    HWY_INLINE Vec finish(int v, std::int32_t key, Vec exponent) const {
      if (kernel.is_mixed) {
        exponent = hn::IfThenElse(kernel.sees(v, key), exponent, hn::Set(kReals, kMinusInfinity));
      }
      largest[v] = hn::Max(exponent, largest[v]);
      return exponent;
    }
  };

  // Moves m by `largest` where that exceeds the row's threshold, and returns by how much. Of every
  // vector in which a row moves, scale(v, factor) is told what its sums over keys before are to be
  // multiplied by.
  template <class Scale>
  HWY_INLINE void move(const Vec (&largest)[kVectors], Vec (&shift)[kVectors], const Scale& scale) {
    const PanelState& state = panel.state;
    panel.moving = false;
    for (int v = 0; v < kVectors; ++v) {
      const Vec threshold = load(state.threshold, v);
      const auto is_empty = hn::Lt(threshold, hn::Zero(kReals));
      const auto begins = hn::Ge(largest[v], hn::Set(kReals, kLowestStartOf<Real>));
      const auto moves = hn::And(hn::Gt(largest[v], threshold), hn::Or(begins, hn::Not(is_empty)));
      shift[v] = hn::IfThenElseZero(moves, largest[v]);
      if (hn::AllFalse(kReals, moves)) continue;
      panel.moving = true;
      store(hn::Sub(load(state.minus_m, v), shift[v]), state.minus_m, v);
      store(hn::IfThenElse(moves, hn::Set(kReals, kLargestExponent), threshold), state.threshold,
            v);
      // An empty state is 0 already, and stays so whatever the shift.
      scale(v, hn::IfThenElse(is_empty, hn::Set(kReals, 1.0F), exp2(hn::Neg(shift[v]))));
    }
  }

  HWY_INLINE void move_state(const Vec (&largest)[kVectors], Vec (&shift)[kVectors]) {
    const PanelState& state = panel.state;
    move(largest, shift, [&](int v, Vec factor) HWY_ATTR {
      store(hn::Mul(load(state.sum, v), factor), state.sum, v);
      for (std::int32_t d = 0; d < panel.value_dim; ++d) {
        Real* out = state.out + d * kWidth;
        store(hn::Mul(load(out, v), factor), out, v);
      }
    });
  }

  // use(v, key, at) for the tile's vectors in which some row sees the key; `at` points to it.
  template <class Use>
  struct VisitSegment {
    const PanelKernel& kernel;
    const Use& use;

    template <int kFirst, int kCount>
    HWY_INLINE void run(const Segment& segment) const {
      for (std::int32_t key = segment.begin; key < segment.end; ++key) {
        Real* row = kernel.weights + key * kWidth;
        for (int v = kFirst; v < kFirst + kCount; ++v) use(v, key, row + v * kLanes);
      }
    }
  };

  template <class Use>
  HWY_INLINE void visit(const Use& use) const {
    for (std::int32_t i = 0; i < num_segments; ++i) {
      with_vectors<kVectors>(segments[i], VisitSegment<Use>{*this, use});
    }
  }

  // Replaces what is in the tile where the row does not see the key.
  HWY_INLINE void replace_unseen(Real replacement) const {
    visit([&](int v, std::int32_t key, Real* at) HWY_ATTR {
      const Vec seen = hn::Load(kReals, at);
      hn::Store(hn::IfThenElse(sees(v, key), seen, hn::Set(kReals, replacement)), kReals, at);
    });
  }

  // weights[key] = 2^(exponent − shift) with exponent = exponent_of(v, weights[key]).
  template <class ExponentOf>
  HWY_INLINE void weigh(const Vec (&shift)[kVectors], const ExponentOf& exponent_of) {
    Vec tile_sum[kVectors];
    for (int v = 0; v < kVectors; ++v) tile_sum[v] = hn::Zero(kReals);
    visit([&](int v, std::int32_t, Real* at) HWY_ATTR {
      const Vec exponent = exponent_of(v, hn::Load(kReals, at));
      Vec weight = exp2(hn::Sub(exponent, shift[v]));
      tile_sum[v] = hn::Add(tile_sum[v], weight);
      if (panel.guarded) {
        const auto is_hidden = hn::Eq(exponent, hn::Set(kReals, kMinusInfinity));
        weight = hn::IfThenElse(is_hidden, hn::Set(kReals, kUnseen), weight);
      }
      hn::Store(weight, kReals, at);
    });
    for (int v = 0; v < kVectors; ++v) {
      store(hn::Add(load(panel.state.sum, v), tile_sum[v]), panel.state.sum, v);
    }
  }

  HWY_INLINE void separate_weights() {
    Vec largest[kVectors];
    Vec shift[kVectors];
    for (int v = 0; v < kVectors; ++v) largest[v] = hn::Set(kReals, kMinusInfinity);
    score(Exponents{*this, largest});
    move_state(largest, shift);
    weigh(shift, [](int, Vec exponent) HWY_ATTR { return exponent; });
  }

  template <bool kGuarded, int kRows>
  struct ValueSegment {
    const PanelKernel& kernel;
    const Real* values;  // [key][value_stride], from the register block's first column on
    Vec (&sums)[kRows][kVectors];

    template <int kFirst, int kCount>
    HWY_INLINE void run(const Segment& segment) const {
      const std::int64_t stride = kernel.tile.value_stride;
      multiply_add<2, kFirst, kCount, kGuarded>({values + segment.begin * stride, 1, stride},
                                                kernel.weights + segment.begin * kWidth,
                                                segment.end - segment.begin, sums);
    }
  };

  template <bool kGuarded>
  struct ValueBlock {
    const PanelKernel& kernel;

    template <int kRows>
    HWY_INLINE void run(std::int32_t column) const {
      Real* HWY_RESTRICT out = kernel.panel.state.out + column * kWidth;
      Vec sums[kRows][kVectors];
      for (int i = 0; i < kRows; ++i)
        for (int v = 0; v < kVectors; ++v) sums[i][v] = kernel.load(out + i * kWidth, v);
      const ValueSegment<kGuarded, kRows> add{kernel, kernel.tile.value + column, sums};
      if (!kernel.is_mixed) {
        add.template run<0, kVectors>(kernel.segments[0]);
      } else {
        for (std::int32_t i = 0; i < kernel.num_segments; ++i) {
          with_vectors<kVectors>(kernel.segments[i], add);
        }
      }
      for (int i = 0; i < kRows; ++i)
        for (int v = 0; v < kVectors; ++v) kernel.store(sums[i][v], out + i * kWidth, v);
    }
  };

  HWY_INLINE void add_values() {
    if (!panel.guarded) {
      for_each_block(0, panel.value_dim, ValueBlock<false>{*this});
    } else {
      for_each_block(0, panel.value_dim, ValueBlock<true>{*this});
    }
  }

  // Multiplies the weights by what dropout says; those that are marked stay.
  HWY_INLINE void drop() {
    if (panel.dropout == nullptr) return;
    const std::int32_t first = begin / 8 * 8;
    const auto drop_some = panel.guarded ? drop_weights<true> : drop_weights<false>;
    drop_some(*panel.dropout, tile.first_key + first, end - first, kWidth,
              weights + first * kWidth);
  }

  // Whether every row that will see a key has seen one: the first visible tile always moves m.
  HWY_INLINE bool has_started() const {
    bool started = true;
    for (int v = 0; v < kVectors; ++v) {
      started =
          started && hn::AllTrue(kReals, hn::Ge(load(panel.state.threshold, v), hn::Zero(kReals)));
    }
    return started;
  }

  HWY_INLINE void attend() {
    if (begin >= end) return;
    if (panel.moving || !has_started() || !try_fused_weights()) separate_weights();
    if (panel.guarded && is_mixed) replace_unseen(kUnseen);
    drop();
    add_values();
  }

  struct RawScores {
    static constexpr bool kFinishes = false;
    HWY_INLINE Vec start(int) const { return hn::Zero(kReals); }
  };

  HWY_INLINE void raw_scores() const {
    if (begin < end) score(RawScores{});
  }

  // Like attend(), from scores in natural units that are −infinity where an irregular mask hides a
  // key.
  HWY_INLINE void absorb() {
    if (begin >= end) return;
    Vec largest[kVectors];
    Vec minus_m[kVectors];
    Vec shift[kVectors];
    for (int v = 0; v < kVectors; ++v) largest[v] = hn::Set(kReals, kMinusInfinity);
    if (is_mixed) replace_unseen(kMinusInfinity);
    visit([&](int v, std::int32_t, Real* at)
              HWY_ATTR { largest[v] = hn::Max(hn::Load(kReals, at), largest[v]); });
    for (int v = 0; v < kVectors; ++v) {
      minus_m[v] = load(panel.state.minus_m, v);
      // Rounding keeps the order: the exponent of the largest score is the largest exponent.
      const Vec exponent = exponent_of_score(largest[v], minus_m[v]);
      note_range(v, largest[v], exponent);
      largest[v] = exponent;
    }
    move_state(largest, shift);
    weigh(shift, [&](int v, Vec score) HWY_ATTR { return exponent_of_score(score, minus_m[v]); });
    drop();
    add_values();
  }

  // Marks rows that have seen nothing yet but scores they cannot begin with.
  HWY_INLINE void note_range(int v, Vec score, Vec exponent) {
    const Vec hidden = hn::Set(kReals, kMinusInfinity);
    const auto is_beyond =
        hn::And(hn::Lt(exponent, hn::Set(kReals, kLowestStartOf<Real>)), hn::Gt(score, hidden));
    if (HWY_LIKELY(hn::AllFalse(kReals, is_beyond))) return;
    const Vec threshold = load(panel.state.threshold, v);
    const auto is_empty = hn::Eq(threshold, hidden);
    store(hn::IfThenElse(hn::And(is_beyond, is_empty), hn::Set(kReals, kBeyondRangeOf<Real>),
                         threshold),
          panel.state.threshold, v);
  }

  static HWY_INLINE Vec exponent_of_score(Vec score, Vec minus_m) {
    return hn::MulAdd(score, hn::Set(kReals, Constants<Real>::kLog2E), minus_m);
  }
};

}  // namespace heed::inline v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_PANEL_INL_H_
