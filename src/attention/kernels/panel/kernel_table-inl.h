// The table of the kernels of one element type, compiled once for each instruction set.
#if defined(HEED_KERNEL_TABLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KERNEL_TABLE_INL_H_
#undef HEED_KERNEL_TABLE_INL_H_
#else
#define HEED_KERNEL_TABLE_INL_H_
#endif

#include <algorithm>
#include <cstring>

#include "attention/kernels/decode/attend_rows-inl.h"
#include "attention/kernels/panel/attend-inl.h"
#include "attention/kernels/panel/by_width-inl.h"
#include "attention/kernels/panel/panel-inl.h"
#include "attention/kernels/panel/scores-inl.h"
#include "attention/kernels/panel/weights-inl.h"
#include "hwy/highway.h"
#include "simd/transpose-inl.h"
#if HEED_REAL_BITS == 32
#include "simd/half-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

const BackwardTable* backward_table();  // in backward_table-inl.h

template <int kVectors>
struct ClearUnseen {
  static void run(const Tile& tile, const Panel& panel, Real* weights) {
    const PanelKernel<kVectors> kernel(tile, panel, weights);
    for (std::int32_t key = kernel.begin; key < kernel.end; ++key) {
      for (int v = 0; v < kVectors; ++v) {
        Real* at = weights + key * kernel.kWidth;
        const Vec weight = kernel.load(at, v);
        auto hidden = hn::Eq(weight, hn::Set(kReals, kUnseen));
        if (kernel.is_mixed) hidden = hn::Or(hidden, hn::Not(kernel.sees(v, key)));
        kernel.store(hn::IfThenZeroElse(hidden, weight), at, v);
      }
    }
  }
};
void clear_unseen(const Tile& tile, const Panel& panel, Real* weights) {
  by_width<ClearUnseen>(panel.vectors, tile, panel, weights);
}

void add_to_sums(const Tile& tile, const Panel& panel, Real* scores, const PanelSums& sums) {
  by_width<AddToSums>(panel.vectors, tile, panel, scores, sums);
}

void weigh(const Tile& tile, const Panel& panel, const PanelLogSums& sums, const WeightTile& out) {
  by_width<Weigh>(panel.vectors, tile, panel, sums, out);
}

void add_entropy(const WeightTile& tile, Real* sums) {
  by_width<AddEntropy>(tile.vectors, tile, sums);
}

void keep_largest(const WeightTile& tile, const PanelLargest& largest) {
  by_width<KeepLargest>(tile.vectors, tile, largest);
}

void count_seen(const ScoreTile& tile, Real* counts) {
  by_width<CountSeen>(tile.width / kLanes, tile, counts);
}

void add_products(const WeightTile& a, const WeightTile& b, Real* sums) {
  by_width<AddProducts>(a.vectors, a, b, sums);
}

// The number of elements of minus_m, threshold and sum.
HWY_INLINE std::int32_t state_width(const Panel& panel) {
  return panel.has_few_rows() ? (panel.num_rows + kLanes - 1) / kLanes * kLanes
                              : panel.vectors * kLanes;
}

bool is_finite(const Panel& panel, const PanelState& state) {
  const std::int32_t width = state_width(panel);
  const std::int64_t out_size = panel.has_few_rows()
                                    ? std::int64_t{panel.num_rows} * out_stride(panel)
                                    : std::int64_t{panel.value_dim} * width;
  // 0 · x is 0 unless x is infinite or NaN. There are several sums, as one would have to wait for
  // itself.
  constexpr std::int64_t kSums = 4;
  Vec products[kSums];
  for (Vec& sum : products) sum = hn::Zero(kReals);
  const auto multiply_in = [](const Real* at, Vec& sum) HWY_ATTR {
    sum = hn::MulAdd(hn::Load(kReals, at), hn::Zero(kReals), sum);
  };
  for (std::int32_t r = 0; r < width; r += kLanes) multiply_in(state.sum + r, products[0]);
  std::int64_t i = 0;
  for (; i + kSums * kLanes <= out_size; i += kSums * kLanes) {
    for (std::int64_t j = 0; j < kSums; ++j) multiply_in(state.out + i + j * kLanes, products[j]);
  }
  for (; i < out_size; i += kLanes) multiply_in(state.out + i, products[0]);
  const Vec all = hn::Add(hn::Add(products[0], products[1]), hn::Add(products[2], products[3]));
  return hn::AllTrue(kReals, hn::Eq(all, hn::Zero(kReals)));
}

HWY_INLINE void combine(Real* total, Vec total_factor, const Real* part, Vec part_factor) {
  const Vec scaled = hn::Mul(hn::Load(kReals, total), total_factor);
  hn::Store(hn::MulAdd(hn::Load(kReals, part), part_factor, scaled), kReals, total);
}

// Converts both states to sums over the larger of their offsets m. A state without keys does not
// count.
void merge(const Panel& panel, const PanelState& part, const PanelState& total) {
  const std::int32_t width = state_width(panel);
  for (std::int32_t r = 0; r < width; r += kLanes) {
    const Vec part_minus_m = hn::Load(kReals, part.minus_m + r);
    const Vec total_minus_m = hn::Load(kReals, total.minus_m + r);
    const Vec part_threshold = hn::Load(kReals, part.threshold + r);
    const Vec total_threshold = hn::Load(kReals, total.threshold + r);
    const auto part_empty = hn::Lt(part_threshold, hn::Zero(kReals));
    const auto total_empty = hn::Lt(total_threshold, hn::Zero(kReals));
    Vec minus_m = hn::Min(part_minus_m, total_minus_m);
    minus_m = hn::IfThenElse(part_empty, total_minus_m, minus_m);
    minus_m = hn::IfThenElse(total_empty, part_minus_m, minus_m);
    const Vec part_factor = hn::IfThenZeroElse(part_empty, exp2(hn::Sub(minus_m, part_minus_m)));
    const Vec total_factor = hn::IfThenZeroElse(total_empty, exp2(hn::Sub(minus_m, total_minus_m)));
    hn::Store(minus_m, kReals, total.minus_m + r);
    hn::Store(
        hn::IfThenElse(hn::And(part_empty, total_empty), hn::Max(part_threshold, total_threshold),
                       hn::Set(kReals, kLargestExponent)),
        kReals, total.threshold + r);
    combine(total.sum + r, total_factor, part.sum + r, part_factor);
    if (!panel.has_few_rows()) {
      for (std::int64_t i = r; i < std::int64_t{panel.value_dim} * width; i += width) {
        combine(total.out + i, total_factor, part.out + i, part_factor);
      }
      continue;
    }
    HWY_ALIGN Real part_factors[kLanes];
    HWY_ALIGN Real total_factors[kLanes];
    hn::Store(part_factor, kReals, part_factors);
    hn::Store(total_factor, kReals, total_factors);
    for (std::int32_t row = r; row < std::min(r + kLanes, panel.num_rows); ++row) {
      const Vec of_part = hn::Set(kReals, part_factors[row - r]);
      const Vec of_total = hn::Set(kReals, total_factors[row - r]);
      const std::int64_t first = std::int64_t{row} * out_stride(panel);
      for (std::int64_t i = first; i < first + out_stride(panel); i += kLanes) {
        combine(total.out + i, of_total, part.out + i, of_part);
      }
    }
  }
}

std::int64_t fma_burst(std::int64_t steps, Real* sink) {
  // Enough independent chains to hide the latency of a multiply-add on two ports; with their factor
  // they fit the registers.
  constexpr int kChains = HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HEED_NEON ? 16 : 12;
  const Vec factor = hn::Set(kReals, 0.999F);
  Vec sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = hn::Set(kReals, static_cast<Real>(i));
  for (std::int64_t step = 0; step < steps; ++step) {
    for (int i = 0; i < kChains; ++i) sums[i] = hn::MulAdd(sums[i], factor, factor);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = hn::Add(sums[0], sums[i]);
  *sink = hn::GetLane(sums[0]);
  return 2 * steps * kChains * kLanes;
}

void widen(DataType type, const std::byte* source, std::int64_t count, Real* numbers) {
  switch (type) {
#if HEED_REAL_BITS == 32
    case DataType::kFloat16:
      return widen_all<Float16Format>(source, count, numbers);
    case DataType::kBFloat16:
      return widen_all<BFloat16Format>(source, count, numbers);
#endif
    default:
      if (count > 0) std::memcpy(numbers, source, static_cast<std::size_t>(count) * sizeof(Real));
  }
}

void narrow(DataType type, const Real* numbers, std::int64_t count, std::byte* target) {
  switch (type) {
#if HEED_REAL_BITS == 32
    case DataType::kFloat16:
      return narrow_all<Float16Format>(numbers, count, target);
    case DataType::kBFloat16:
      return narrow_all<BFloat16Format>(numbers, count, target);
#endif
    default:
      if (count > 0) std::memcpy(target, numbers, static_cast<std::size_t>(count) * sizeof(Real));
  }
}

void narrow_rest(DataType type, const Real* numbers, std::int64_t count, std::byte* target) {
  switch (type) {
#if HEED_REAL_BITS == 32
    case DataType::kFloat16:
      return narrow_rest_of_all<Float16Format>(numbers, count, target);
    case DataType::kBFloat16:
      return narrow_rest_of_all<BFloat16Format>(numbers, count, target);
#endif
    default:
      (void)numbers;
      if (count > 0) std::memset(target, 0, static_cast<std::size_t>(count) * sizeof(Real));
  }
}

detail::TileTarget tile_target() {
  if (HWY_TARGET <= HWY_AVX3) return detail::TileTarget::kAvx512;
  return HWY_TARGET == HWY_AVX2 ? detail::TileTarget::kAvx2 : detail::TileTarget::kBaseline;
}

// For the tables for double, all arguments are null.
KernelTable make_kernel_table(const IntegerTable* integers, const RecurrenceTable* recurrence,
                              const BasicKernelTable<double>* in_double) {
  return {.name = name_of_target(HWY_TARGET),
          .vectors = name_of_target(HWY_TARGET),
          .lanes = kLanes,
          .tile_target = tile_target(),
          .loops = {.cap = cap,
                    .add_alibi = add_alibi,
                    .add_rows = add_rows,
                    .add_diagonals = add_diagonals,
                    .sum_keys = sum_keys,
                    .multiply_rows = multiply_rows,
                    .add_mask_rows = add_mask_rows,
                    .gradients = &backward_table()->loops},
          .backward = backward_table(),
          .integers = integers,
          .recurrence = recurrence,
          .in_double = in_double,
          .in_pairs = nullptr,
          .in_numbers = nullptr,
          .keys_together = 1,
          .attend = attend,
          .attend_rows = attend_rows,
          .score = score,
          .absorb = absorb,
          .clear_unseen = clear_unseen,
          .hide = hide,
          .add_mask = add_mask,
          .add_to_sums = add_to_sums,
          .weigh = weigh,
          .add_entropy = add_entropy,
          .keep_largest = keep_largest,
          .add_mass = add_mass,
          .count_seen = count_seen,
          .add_products = add_products,
          .pack = pack,
          .pack_pairs = nullptr,
          .pair_panel = nullptr,
          .pair_keys = nullptr,
          .unpack = unpack,
          .unpack_rows = unpack_rows,
          .is_finite = is_finite,
          .merge = merge,
          .widen = widen,
          .narrow = narrow,
          .narrow_rest = narrow_rest,
          .fma_burst = fma_burst};
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_KERNEL_TABLE_INL_H_
