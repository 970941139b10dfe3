// The kernels of the backward pass, compiled once for each instruction set.
#if defined(HEED_BACKWARD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_BACKWARD_INL_H_
#undef HEED_BACKWARD_INL_H_
#else
#define HEED_BACKWARD_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "attention/kernels/panel/backward.h"
#include "attention/kernels/panel/panel-inl.h"
#include "attention/kernels/panel/softmax-inl.h"
#include "hwy/highway.h"
#include "simd/exp2-inl.h"
#if HEED_HAS_TILES
#include "attention/kernels/panel/tile_products-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// The register block of products that sum over rows: keys × vectors of dimensions. The sums, a
// vector of each dimension and a broadcast element just fit the registers. Four vectors divide the
// usual dimensions; three would not.
constexpr int kKeyRegisterRows = 6;
constexpr int kColumnVectors = HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HEED_NEON ? 4 : 2;

// Smaller weights become exactly 0, as those of exp2() below −100.
constexpr Real kSmallestWeight = 0x1p-100F;

// Calls use(key, v, place of the key) for all keys that some row sees and all vectors, without
// segments.
template <int kVectors, class Use>
HWY_INLINE void for_each_cell(const PanelKernel<kVectors>& kernel, const Use& use) {
  for (std::int32_t key = kernel.begin; key < kernel.end; ++key) {
    for (int v = 0; v < kVectors; ++v) use(key, v, key * kernel.kWidth);
  }
}

// m − lse · log2 e, which nearly cancel.
HWY_INLINE Vec minus_log2_of(Vec m, Vec lse) {
  using Numbers = Constants<Real>;
#if HWY_TARGET != HWY_SSE4
  const Vec difference = hn::NegMulAdd(lse, hn::Set(kReals, Numbers::kLog2E), m);
  return hn::NegMulAdd(lse, hn::Set(kReals, Numbers::kLog2ERest), difference);
#else
  // The product is rounded before it is subtracted, so lse is divided into two halves, whose
  // products are exact.
  const auto high_bits =
      hn::Set(kBits, ~((hn::TFromD<Bits>{1} << (Numbers::kFractionBits / 2 + 1)) - 1));
  const Vec high = hn::BitCast(kReals, hn::And(hn::BitCast(kBits, lse), high_bits));
  const Vec low = hn::IfThenZeroElse(hn::Eq(high, lse), hn::Sub(lse, high));  // 0 for infinity
  const Vec factor = hn::Set(kReals, Numbers::kLog2EHigh);
  const Vec difference = hn::Sub(hn::Sub(m, hn::Mul(high, factor)), hn::Mul(low, factor));
  constexpr Real kFactorRest = Numbers::kLog2E - Numbers::kLog2EHigh + Numbers::kLog2ERest;
  return hn::Sub(difference, hn::Mul(lse, hn::Set(kReals, kFactorRest)));
#endif
}

// The exponents of the forward pass to the last bit, with the same offsets, moved at the same keys:
// the lse includes the rounding errors of these scores.
template <int kVectors>
struct Recompute {
  using Kernel = PanelKernel<kVectors>;

  // Computes weights on the assumption that no m moves, as in SoftmaxKernel.
  struct Use {
    static constexpr bool kFinishes = true;
    static constexpr bool kMakesPairs = false;
    Exponents<kVectors> exponents;
    Vec offset[kVectors];

    HWY_INLINE const Real* start() const { return exponents.start(); }
    template <bool kMixed>
    HWY_INLINE Vec finish(int v, std::int32_t key, Vec score) {
      const Vec exponent = exponents.template finish<kMixed>(v, key, score);
      return weight_of(*exponents.kernel, v, key, hn::Add(exponent, offset[v]));
    }
  };

  // 0 where the row does not see the key, even if its lse is NaN.
  static HWY_INLINE Vec weight_of(const Kernel& kernel, int v, std::int32_t key, Vec exponent) {
    const Vec weight = bounded_exp2(exponent);
    return kernel.is_mixed ? hn::IfThenElseZero(kernel.sees(v, key), weight) : weight;
  }

  // The difference between an exponent and that of the weight: m − lse · log2 e.
  static HWY_INLINE void find_offset(const Real* minus_m, const RowLse& lse,
                                     Vec (&offset)[kVectors]) {
    for (int v = 0; v < kVectors; ++v) {
      const Vec m = hn::Neg(hn::LoadU(kReals, minus_m + v * kLanes));
      offset[v] = minus_log2_of(m, Kernel::load(lse.lse, v));
      if (lse.low == nullptr) continue;
      const Vec log2_e = hn::Set(kReals, Constants<Real>::kLog2E);
      offset[v] = hn::NegMulAdd(Kernel::load(lse.low, v), log2_e, offset[v]);
    }
  }

  static HWY_INLINE bool try_fused(const Kernel& kernel, const PanelState& state,
                                   const RowLse& lse) {
    Use use{Exponents<kVectors>(kernel, state.minus_m), {}};
    find_offset(state.minus_m, lse, use.offset);
    kernel.score(use);
    bool stays = true;
    for (int v = 0; v < kVectors; ++v) {
      const Vec threshold = kernel.load(state.threshold, v);
      stays = stays && hn::AllFalse(kReals, hn::Gt(use.exponents.largest[v], threshold));
    }
    return stays;
  }

  static HWY_INLINE void run_separately(const Kernel& kernel, PanelState& state,
                                        const RowLse& lse) {
    Exponents<kVectors> exponents(kernel, state.minus_m);
    Vec shift[kVectors];
    Vec offset[kVectors];
    kernel.score(exponents);
    move_offsets(exponents.largest, state, shift, [](int, Vec) HWY_ATTR {});
    find_offset(state.minus_m, lse, offset);
    kernel.visit([&](int v, std::int32_t key, Real* at) HWY_ATTR {
      const Vec exponent = hn::Sub(hn::Load(kReals, at), shift[v]);
      hn::Store(weight_of(kernel, v, key, hn::Add(exponent, offset[v])), kReals, at);
    });
  }

  static void run(const Tile& tile, const Panel& panel, PanelState& state, const RowLse& lse,
                  Real* weights) {
    const Kernel kernel(tile, panel, weights);
    if (kernel.begin >= kernel.end) return;
    if (state.moving || !has_started<kVectors>(state) || !try_fused(kernel, state, lse)) {
      run_separately(kernel, state, lse);
    }
  }
};

template <int kVectors>
struct WeighKept {
  static void run(const Tile& tile, const Panel& panel, const KeptTile& kept, const RowLse& lse,
                  Real* weights) {
    const PanelKernel<kVectors> kernel(tile, panel, weights);
    if (kernel.begin >= kernel.end) return;
    Vec factor[kVectors];
    Recompute<kVectors>::find_offset(kept.minus_m, lse, factor);
    for (int v = 0; v < kVectors; ++v) factor[v] = bounded_exp2(factor[v]);
    kernel.visit([&](int v, std::int32_t key, Real* at) HWY_ATTR {
      Vec weight = hn::Mul(hn::LoadU(kReals, kept.weights + (at - weights)), factor[v]);
      // kUnseen is negative, so it becomes 0 as well.
      weight = hn::IfThenZeroElse(hn::Lt(weight, hn::Set(kReals, kSmallestWeight)), weight);
      if (kernel.is_mixed) weight = hn::IfThenElseZero(kernel.sees(v, key), weight);
      hn::Store(weight, kReals, at);
    });
  }
};

template <int kVectors>
struct WeighScores {
  static void run(const Tile& tile, const Panel& panel, const RowLse& lse, Real* scores) {
    const PanelKernel<kVectors> kernel(tile, panel, scores);
    for_each_cell(kernel, [&](std::int32_t key, int v, std::int32_t row) HWY_ATTR {
      Vec difference = hn::Sub(kernel.load(scores + row, v), kernel.load(lse.lse, v));
      if (lse.low != nullptr) difference = hn::Sub(difference, kernel.load(lse.low, v));
      Vec weight = bounded_exp2(hn::Mul(difference, hn::Set(kReals, Constants<Real>::kLog2E)));
      if (kernel.is_mixed) weight = hn::IfThenElseZero(kernel.sees(v, key), weight);
      kernel.store(weight, scores + row, v);
    });
  }
};

template <int kVectors>
struct GradScores {
  using Kernel = PanelKernel<kVectors>;

  template <bool kDrops>
  struct Use {
    static constexpr bool kFinishes = true;
    static constexpr bool kMakesPairs = false;
    const Real* weights;
    const Real* dropout;
    Vec delta[kVectors];

    HWY_INLINE explicit Use(const BackwardTable::GradScores& terms)
        : weights(terms.weights), dropout(terms.dropout) {
      for (int v = 0; v < kVectors; ++v) delta[v] = Kernel::load(terms.delta, v);
    }

    HWY_INLINE const Real* start() const { return kZeros; }
    template <bool kMixed>
    HWY_INLINE Vec finish(int v, std::int32_t key, Vec grad_weight) const {
      const std::int32_t row = key * Kernel::kWidth;
      const Vec weight = Kernel::load(weights + row, v);
      if constexpr (kDrops) grad_weight = hn::Mul(grad_weight, Kernel::load(dropout + row, v));
      const Vec grad = hn::Mul(weight, hn::Sub(grad_weight, delta[v]));
      // A hidden value may be NaN.
      return hn::IfThenZeroElse(hn::Eq(weight, hn::Zero(kReals)), grad);
    }
  };

  static void run(const Tile& tile, const Panel& panel, const BackwardTable::GradScores& terms,
                  Real* grad_scores) {
    // Arguments for the kernel of scores, with values as keys and grad_out as the query.
    Tile values = tile;
    values.key = tile.value;
    values.key_stride = tile.value_stride;
    if (!terms.fetches) values.fetched = {};
    Panel grads = panel;
    grads.query = terms.grad_out;
    grads.head_dim = panel.value_dim;
    const PanelKernel<kVectors> kernel(values, grads, grad_scores);
    if (terms.dropout != nullptr) {
      visit(kernel, terms.whole, Use<true>(terms));
    } else {
      visit(kernel, terms.whole, Use<false>(terms));
    }
  }

  template <class Any>
  static HWY_INLINE void visit(const PanelKernel<kVectors>& kernel, bool whole, Any use) {
    if (!whole) return kernel.score(use);
    kernel.score_whole(use);
  }
};

template <int kVectors>
struct FillDropout {
  static void run(const Tile& tile, const Panel& panel, const DropoutRows& dropout, Real* factors) {
    const PanelKernel<kVectors> kernel(tile, panel, factors);
    for_each_cell(kernel, [&](std::int32_t, int v, std::int32_t row)
                              HWY_ATTR { kernel.store(hn::Set(kReals, 1.0F), factors + row, v); });
    drop(kernel, {.dropout = &dropout});
  }
};

template <int kVectors>
struct Multiply {
  static void run(const Tile& tile, const Panel& panel, const Real* factors, Real* numbers) {
    const PanelKernel<kVectors> kernel(tile, panel, numbers);
    for_each_cell(kernel, [&](std::int32_t, int v, std::int32_t row) HWY_ATTR {
      const Vec number = kernel.load(numbers + row, v);
      const Vec product = hn::Mul(number, kernel.load(factors + row, v));
      kernel.store(hn::IfThenZeroElse(hn::Eq(number, hn::Zero(kReals)), product), numbers + row, v);
    });
  }
};

template <int kVectors>
struct AddToQuery {
  using Kernel = PanelKernel<kVectors>;

  static void run(const Tile& tile, const Panel& panel, bool guarded, Real* grad_scores,
                  Real* sums) {
    // Arguments for the kernel of outputs, with keys as values.
    Tile keys = tile;
    keys.value = tile.key;
    keys.value_stride = tile.key_stride;
    const Kernel kernel(keys, panel, grad_scores);
    HWY_ALIGN Real pairs[kInPairs ? kTileKeys / 2 * Kernel::kWidth : 1];
    const auto operands = kernel.over_keys(0, pairs);
    if (!guarded) return kernel.template add_values<false>(operands, panel.head_dim, sums);
#if HEED_HAS_TILES
    add_counted_values<Counted::kOfNonzeroB>(kernel, operands, panel.head_dim, sums);
#else
    for (std::int32_t i = 0; i < kernel.num_segments; ++i) {
      add_guarded(kernel, operands, kernel.segments[i], sums);
    }
#endif
  }

  static void add_guarded(const Kernel& kernel, const typename Kernel::OverKeys& operands,
                          const Segment& segment, Real* sums) {
    for (std::int32_t i = segment.begin / kPerElement; i < elements_of(segment.end); ++i) {
      const Real* elements = operands.values + i * operands.stride;
      for (int v = segment.first_vector; v < segment.first_vector + segment.num_vectors; ++v) {
        const Vec grad = kernel.load(operands.weights + i * kernel.kWidth, v);
        for (std::int32_t d = 0; d < kernel.panel.head_dim; ++d) {
          Real* out = sums + d * kernel.kWidth;
          const Vec added = add_nonzero_product(grad, broadcast(elements + d), kernel.load(out, v));
          kernel.store(added, out, v);
        }
      }
    }
  }
};

// The products of rows of a panel that are summed for keys.
template <int kVectors>
struct RowSums {
  using Kernel = PanelKernel<kVectors>;

  // The operands of the sums over rows, in elements of rows: the numbers of each key.
  static constexpr int kRowElements = Kernel::kWidth / kPerElement;
  using Numbers = const Real*;  // [kTileKeys][kRowElements]

#if HEED_HAS_PAIRS
  // Pairs the numbers of neighbouring rows, multiplied by `scale`.
  static HWY_INLINE void pair_numbers(const Kernel& kernel, Real scale, Real* pairs) {
    const Vec factor = hn::Set(kReals, scale);
    kernel.visit([&](int v, std::int32_t key, const Real* at) HWY_ATTR {
      store_neighbours<First::kLower>(hn::Mul(hn::Load(kReals, at), factor),
                                      pairs + key * kRowElements + v * kLanes / 2);
    });
  }
#endif

  // Some neighbouring vectors of every row, and their sums for keys.
  template <int kColumns>
  struct Columns {
    Numbers numbers;
    const Real* HWY_RESTRICT rows;  // [elements of capacity][kColumns] vectors
    KeySums sums;
    std::int32_t first_row;  // in elements
    std::int32_t num_rows;

    template <int kKeys>
    HWY_INLINE void run(std::int32_t key) const {
      Real* const at = sums.data + key * sums.stride;
      const Operand factors{numbers + key * kRowElements + first_row, kRowElements, 1};
      multiply_block<kKeys, kColumns, 0, kColumns>(factors, rows + first_row * kColumns * kLanes,
                                                   num_rows, {at, sums.stride, at, sums.stride});
    }

    HWY_INLINE void run_all(std::int32_t begin, std::int32_t end) const {
      std::int32_t key = begin;
      for (; key + kKeyRegisterRows <= end; key += kKeyRegisterRows) run<kKeyRegisterRows>(key);
      if (key + 4 <= end) {
        run<4>(key);
        key += 4;
      }
      if (key + 2 <= end) {
        run<2>(key);
        key += 2;
      }
      if (key < end) run<1>(key);
    }

    // Leaves out products with 0, as a row may be NaN or infinite.
    HWY_INLINE void run_guarded(std::int32_t begin, std::int32_t end) const {
      for (std::int32_t key = begin; key < end; ++key) {
        for (std::int32_t r = first_row; r < first_row + num_rows; ++r) {
          const Vec number = broadcast(numbers + key * kRowElements + r);
          for (int c = 0; c < kColumns; ++c) {
            Real* at = sums.data + key * sums.stride + c * kLanes;
            const Vec row = hn::Load(kReals, rows + (r * kColumns + c) * kLanes);
            hn::Store(add_nonzero_product(number, row, hn::Load(kReals, at)), kReals, at);
          }
        }
      }
    }
  };

  template <int kColumns>
  static HWY_INLINE void add(const Kernel& kernel, Numbers numbers, const Real* strip,
                             const RowVectors& rows, bool guarded, const KeySums& sums) {
    for (std::int32_t i = 0; i < kernel.num_segments; ++i) {
      const Segment& segment = kernel.segments[i];
      const std::int32_t first = segment.first_vector * kLanes;
      const std::int32_t last =
          std::min((segment.first_vector + segment.num_vectors) * kLanes, rows.num_rows);
      if (first >= last) continue;
      const Columns<kColumns> columns{numbers, strip, sums, first / kPerElement,
                                      elements_of(last - first)};
      if (guarded) {
        columns.run_guarded(segment.begin, segment.end);
      } else {
        columns.run_all(segment.begin, segment.end);
      }
    }
  }
};

template <int kVectors>
struct AddToKeys {
#if HEED_HAS_TILES
  using Sums = TileRowSums<kVectors>;
#else
  using Sums = RowSums<kVectors>;
#endif

  static void run(const Tile& tile, const Panel& panel, Real* numbers, const RowVectors& rows,
                  bool guarded, KeySums sums) {
    const PanelKernel<kVectors> kernel(tile, panel, numbers);
    if (kernel.begin >= kernel.end) return;
    constexpr int kStep = kColumnVectors * kLanes;
#if HEED_HAS_PAIRS
    HWY_ALIGN Real pairs[kTileKeys * Sums::kRowElements];
    Sums::pair_numbers(kernel, rows.scale, pairs);
    numbers = pairs;
#endif
    const Real* strip = rows.data;
    std::int32_t vectors = rows.vectors;
    for (; vectors >= kColumnVectors; vectors -= kColumnVectors) {
      Sums::template add<kColumnVectors>(kernel, numbers, strip, rows, guarded, sums);
      strip += std::int64_t{kStep} * rows.capacity;
      sums.data += kStep;
    }
    if constexpr (kColumnVectors > 2) {
      if (vectors == 3) Sums::template add<3>(kernel, numbers, strip, rows, guarded, sums);
      if (vectors == 2) Sums::template add<2>(kernel, numbers, strip, rows, guarded, sums);
    }
    if (vectors == 1) Sums::template add<1>(kernel, numbers, strip, rows, guarded, sums);
  }
};

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_BACKWARD_INL_H_
