// The kernel of a single row: what a panel's lanes would be spent on has no other rows to fill
// them.
#if defined(HEED_ROW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_ROW_INL_H_
#undef HEED_ROW_INL_H_
#else
#define HEED_ROW_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "attention/kernels/exp2-inl.h"
#include "attention/kernels/kernels.h"
#include "attention/kernels/softmax-inl.h"
#include "attention/kernels/transpose-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed::inline v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// A panel of width 1. In the first product lanes are keys, which are turned in registers; in the
// second they are columns. Every chain is that of PanelKernel, step by step, and so is every bit;
// the tile is always taken in two passes.
struct RowKernel {
  const Tile& tile;
  const Panel& panel;
  const PanelOptions& options;
  PanelState& state;
  Real* HWY_RESTRICT weights;  // [num_keys], of the tile's keys from `begin` on
  std::int32_t begin;          // the keys of the tile that the row sees
  std::int32_t num_keys;

  // Columns of the second product that a pass over the keys takes: with more the registers are
  // full, with fewer the multiply-adds wait for each other.
  static constexpr int kColumnVectors = 8;

  RowKernel(const Tile& t, const Panel& p, const PanelOptions& o, PanelState& s, Real* w)
      : tile(t), panel(p), options(o), state(s), weights(w) {
    begin = std::max(panel.any_begin - tile.first_key, 0);
    num_keys = std::min(panel.any_end - tile.first_key, tile.num_keys) - begin;
  }

  void attend() const {
    if (num_keys <= 0) return;
    const Real shift = move(find_exponents());
    weigh(shift);
    add_values();
  }

  // One exponent more for each of kLanes keys; the lanes of those that do not exist repeat the
  // last.
  HWY_INLINE Vec exponents(std::int32_t first) const {
    const Real* rows[kLanes];
    for (int i = 0; i < kLanes; ++i) {
      const std::int32_t key = begin + std::min(first + i, num_keys - 1);
      rows[i] = tile.key + key * tile.key_stride;
    }
    Vec sum = hn::Load(kReals, state.minus_m);
    std::int32_t d = 0;
    for (; d + kLanes <= panel.head_dim; d += kLanes) {
      Vec square[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        square[i] = hn::LoadU(kReals, rows[i] + d);
        // The keys that come next: sixteen streams are too many for the processor to foresee.
        __builtin_prefetch(rows[i] + d + kLanes * tile.key_stride);
      }
      transpose(square);
      for (int i = 0; i < kLanes; ++i) {
        sum = hn::MulAdd(square[i], hn::Set(kReals, panel.query[d + i]), sum);
      }
    }
    for (; d < panel.head_dim; ++d) {
      HWY_ALIGN Real column[kLanes];
      for (int i = 0; i < kLanes; ++i) column[i] = rows[i][d];
      sum = hn::MulAdd(hn::Load(kReals, column), hn::Set(kReals, panel.query[d]), sum);
    }
    return sum;
  }

  // Returns the largest one.
  Real find_exponents() const {
    Vec largest = hn::Set(kReals, kMinusInfinity);
    for (std::int32_t key = 0; key < num_keys; key += kLanes) {
      const Vec exponent = exponents(key);
      largest = hn::Max(exponent, largest);
      hn::Store(exponent, kReals, weights + key);
    }
    return hn::GetLane(hn::MaxOfLanes(kReals, largest));
  }

  // Moves m by `largest` where that exceeds the threshold, and returns by how much.
  Real move(Real largest) const {
    const bool is_empty = state.threshold[0] == kMinusInfinity;
    state.moving = largest > state.threshold[0] && !(is_empty && largest < kLowestStartOf<Real>);
    if (!state.moving) return 0;
    const Vec shift = hn::Set(kReals, largest);
    hn::Store(hn::Sub(hn::Load(kReals, state.minus_m), shift), kReals, state.minus_m);
    hn::Store(hn::Set(kReals, kLargestExponent), kReals, state.threshold);
    if (is_empty) return largest;
    const Vec factor = exp2(hn::Neg(shift));
    hn::Store(hn::Mul(hn::Load(kReals, state.sum), factor), kReals, state.sum);
    for (std::int32_t d = 0; d < panel.value_dim; d += kLanes) {
      hn::Store(hn::Mul(hn::Load(kReals, state.out + d), factor), kReals, state.out + d);
    }
    return largest;
  }

  void weigh(Real shift) const {
    for (std::int32_t key = 0; key < num_keys; key += kLanes) {
      const Vec exponent = hn::Load(kReals, weights + key);
      Vec weight = exp2(hn::Sub(exponent, hn::Set(kReals, shift)));
      if (options.guarded) {
        const auto is_hidden = hn::Eq(exponent, hn::Set(kReals, kMinusInfinity));
        weight = hn::IfThenElse(is_hidden, hn::Set(kReals, kUnseen), weight);
      }
      hn::Store(weight, kReals, weights + key);
    }
  }

  // out[column …] += Σ_key weight · value for kCount vectors of columns. Returns the sum of
  // weights: alone its chain would take as long as all these.
  template <int kCount>
  HWY_INLINE Vec add_columns(std::int32_t column) const {
    Real* out = state.out + column;
    const Real* value = tile.value + begin * tile.value_stride + column;
    Vec sums[kCount];
    for (int v = 0; v < kCount; ++v) sums[v] = hn::Load(kReals, out + v * kLanes);
    Vec weights_sum = hn::Zero(kReals);
    for (std::int32_t key = 0; key < num_keys; ++key, value += tile.value_stride) {
      if (weights[key] == kUnseen) continue;
      const Vec weight = hn::Set(kReals, weights[key]);
      weights_sum = hn::Add(weights_sum, weight);
      for (int v = 0; v < kCount; ++v) {
        sums[v] = hn::MulAdd(hn::LoadU(kReals, value + v * kLanes), weight, sums[v]);
      }
    }
    for (int v = 0; v < kCount; ++v) hn::Store(sums[v], kReals, out + v * kLanes);
    return weights_sum;
  }

  // What whole vectors leave over, from `column` on.
  HWY_INLINE Vec add_rest(std::int32_t column) const {
    HWY_ALIGN Real elements[kLanes] = {};
    const std::int32_t count = panel.value_dim - column;
    Real* out = state.out + column;
    const Real* value = tile.value + begin * tile.value_stride + column;
    Vec sum = count > 0 ? hn::Load(kReals, out) : hn::Zero(kReals);
    Vec weights_sum = hn::Zero(kReals);
    for (std::int32_t key = 0; key < num_keys; ++key, value += tile.value_stride) {
      if (weights[key] == kUnseen) continue;
      std::copy_n(value, count, elements);
      const Vec weight = hn::Set(kReals, weights[key]);
      weights_sum = hn::Add(weights_sum, weight);
      sum = hn::MulAdd(hn::Load(kReals, elements), weight, sum);
    }
    if (count > 0) hn::Store(sum, kReals, out);
    return weights_sum;
  }

  void add_values() const {
    Vec tile_sum = hn::Zero(kReals);
    std::int32_t column = 0;
    const auto fits = [&](int vectors)
                          HWY_ATTR { return column + vectors * kLanes <= panel.value_dim; };
    for (; fits(kColumnVectors); column += kColumnVectors * kLanes) {
      tile_sum = add_columns<kColumnVectors>(column);
    }
    for (; fits(4); column += 4 * kLanes) tile_sum = add_columns<4>(column);
    for (; fits(1); column += kLanes) tile_sum = add_columns<1>(column);
    if (column < panel.value_dim || column == 0) tile_sum = add_rest(column);
    hn::Store(hn::Add(hn::Load(kReals, state.sum), tile_sum), kReals, state.sum);
  }
};

}  // namespace heed::inline v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_ROW_INL_H_
