#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels/kernels.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first: it includes this file once for each instruction set.
#include <algorithm>
#include <cstring>

#include "attention/kernels/kernels.h"
#include "hwy/highway.h"

// Where there is no vector instruction set, the reference computes.
#undef HEED_HAS_VECTORS
#define HEED_HAS_VECTORS (HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128)

// Those targets are compiled last, so that no file is left out between two that include it.
#if HEED_HAS_VECTORS
#include "attention/kernels/by_width-inl.h"
#include "attention/kernels/half-inl.h"
#include "attention/kernels/panel-inl.h"
#include "attention/kernels/row-inl.h"
#include "attention/kernels/scores-inl.h"
#include "attention/kernels/transpose-inl.h"
#include "attention/kernels/weights-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::inline v0::kernels::HWY_NAMESPACE {

const BackwardTable* backward_table();      // in backward.cc
const RecurrenceTable* recurrence_table();  // in recurrence.cc

#if !HEED_HAS_VECTORS

const KernelTable* kernel_table() { return nullptr; }

#else

template <int kVectors>
struct Attend {
  static void run(const Tile& tile, Panel& panel, float* weights) {
    PanelKernel<kVectors>(tile, panel, weights).attend();
  }
};
void attend(const Tile& tile, Panel& panel, float* weights) {
  if (panel.vectors == 0) return RowKernel(tile, panel, weights).attend();
  by_width<Attend>(panel.vectors, tile, panel, weights);
}

template <int kVectors>
struct Score {
  static void run(const Tile& tile, Panel& panel, float* scores) {
    PanelKernel<kVectors>(tile, panel, scores).raw_scores();
  }
};
void score(const Tile& tile, Panel& panel, float* scores) {
  by_width<Score>(panel.vectors, tile, panel, scores);
}

template <int kVectors>
struct Absorb {
  static void run(const Tile& tile, Panel& panel, float* scores) {
    PanelKernel<kVectors>(tile, panel, scores).absorb();
  }
};
void absorb(const Tile& tile, Panel& panel, float* scores) {
  by_width<Absorb>(panel.vectors, tile, panel, scores);
}

void add_to_sums(const Tile& tile, Panel& panel, float* scores, const PanelSums& sums) {
  by_width<AddToSums>(panel.vectors, tile, panel, scores, sums);
}

void weigh(const Tile& tile, Panel& panel, const PanelLogSums& sums, const WeightTile& out) {
  by_width<Weigh>(panel.vectors, tile, panel, sums, out);
}

void add_entropy(const WeightTile& tile, float* sums) {
  by_width<AddEntropy>(tile.vectors, tile, sums);
}

void keep_largest(const WeightTile& tile, const PanelLargest& largest) {
  by_width<KeepLargest>(tile.vectors, tile, largest);
}

void count_seen(const ScoreTile& tile, float* counts) {
  by_width<CountSeen>(tile.width / kLanes, tile, counts);
}

void add_products(const WeightTile& a, const WeightTile& b, float* sums) {
  by_width<AddProducts>(a.vectors, a, b, sums);
}

void add_mass(const WeightTile& tile, std::int32_t first, std::int32_t last, float* mass) {
  by_width<AddMass>(tile.vectors, tile, first, last, mass);
}

// Of minus_m, threshold and sum, and of the vectors of out that belong to them.
HWY_INLINE std::int32_t state_width(const Panel& panel) {
  return std::max(panel.vectors, 1) * kLanes;
}
HWY_INLINE std::int32_t out_size(const Panel& panel) {
  return panel.vectors == 0 ? panel.value_dim : panel.value_dim * panel.vectors * kLanes;
}

bool is_finite(const Panel& panel, const PanelState& state) {
  const std::int32_t width = state_width(panel);
  // 0 · x is 0 unless x is infinite or NaN.
  Vec products = hn::Zero(kFloats);
  const auto multiply_in = [&products](const float* at) HWY_ATTR {
    products = hn::MulAdd(hn::Load(kFloats, at), hn::Zero(kFloats), products);
  };
  for (std::int32_t r = 0; r < width; r += kLanes) multiply_in(state.sum + r);
  for (std::int32_t i = 0; i < out_size(panel); i += kLanes) multiply_in(state.out + i);
  return hn::AllTrue(kFloats, hn::Eq(products, hn::Zero(kFloats)));
}

// Both states become sums over the same m, the larger one; the one over no key counts for nothing.
void merge(const Panel& panel, const PanelState& part, const PanelState& total) {
  const std::int32_t width = state_width(panel);
  for (std::int32_t r = 0; r < width; r += kLanes) {
    const Vec part_minus_m = hn::Load(kFloats, part.minus_m + r);
    const Vec total_minus_m = hn::Load(kFloats, total.minus_m + r);
    const Vec part_threshold = hn::Load(kFloats, part.threshold + r);
    const Vec total_threshold = hn::Load(kFloats, total.threshold + r);
    const auto part_empty = hn::Lt(part_threshold, hn::Zero(kFloats));
    const auto total_empty = hn::Lt(total_threshold, hn::Zero(kFloats));
    Vec minus_m = hn::Min(part_minus_m, total_minus_m);
    minus_m = hn::IfThenElse(part_empty, total_minus_m, minus_m);
    minus_m = hn::IfThenElse(total_empty, part_minus_m, minus_m);
    const Vec part_factor = hn::IfThenZeroElse(part_empty, exp2(hn::Sub(minus_m, part_minus_m)));
    const Vec total_factor = hn::IfThenZeroElse(total_empty, exp2(hn::Sub(minus_m, total_minus_m)));
    hn::Store(minus_m, kFloats, total.minus_m + r);
    hn::Store(
        hn::IfThenElse(hn::And(part_empty, total_empty), hn::Max(part_threshold, total_threshold),
                       hn::Set(kFloats, kLargestExponent)),
        kFloats, total.threshold + r);
    const auto combine = [&](float* total_at, const float* part_at) HWY_ATTR {
      const Vec scaled = hn::Mul(hn::Load(kFloats, total_at), total_factor);
      hn::Store(hn::MulAdd(hn::Load(kFloats, part_at), part_factor, scaled), kFloats, total_at);
    };
    combine(total.sum + r, part.sum + r);
    for (std::int32_t i = r; i < out_size(panel); i += width) combine(total.out + i, part.out + i);
  }
}

std::int64_t fma_burst(std::int64_t steps, float* sink) {
  // Enough chains to hide the latency of a multiply-add on two ports; with their factor they fit
  // the registers.
  constexpr int kChains = HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON ? 16 : 12;
  const Vec factor = hn::Set(kFloats, 0.999F);
  Vec sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = hn::Set(kFloats, static_cast<float>(i));
  for (std::int64_t step = 0; step < steps; ++step) {
    for (int i = 0; i < kChains; ++i) sums[i] = hn::MulAdd(sums[i], factor, factor);
  }
  for (int i = 1; i < kChains; ++i) sums[0] = hn::Add(sums[0], sums[i]);
  *sink = hn::GetLane(sums[0]);
  return 2 * steps * kChains * kLanes;
}

void widen(DataType type, const std::byte* source, std::int64_t count, float* numbers) {
  switch (type) {
    case DataType::kFloat16:
      return widen_all<Float16Format>(source, count, numbers);
    case DataType::kBFloat16:
      return widen_all<BFloat16Format>(source, count, numbers);
    default:
      std::memcpy(numbers, source, static_cast<std::size_t>(count) * sizeof(float));
  }
}

void narrow(DataType type, const float* numbers, std::int64_t count, std::byte* target) {
  switch (type) {
    case DataType::kFloat16:
      return narrow_all<Float16Format>(numbers, count, target);
    case DataType::kBFloat16:
      return narrow_all<BFloat16Format>(numbers, count, target);
    default:
      std::memcpy(target, numbers, static_cast<std::size_t>(count) * sizeof(float));
  }
}

// Highway's names, but for the one that nobody else uses.
const char* target_name() {
  return HWY_TARGET == HWY_AVX3 ? "AVX512" : hwy::TargetName(HWY_TARGET);
}

detail::TileTarget tile_target() {
  if (HWY_TARGET == HWY_AVX3) return detail::TileTarget::kAvx512;
  return HWY_TARGET == HWY_AVX2 ? detail::TileTarget::kAvx2 : detail::TileTarget::kBaseline;
}

const KernelTable* kernel_table() {
  static const KernelTable table{.name = target_name(),
                                 .lanes = kLanes,
                                 .tile_target = tile_target(),
                                 .backward = backward_table(),
                                 .recurrence = recurrence_table(),
                                 .attend = attend,
                                 .score = score,
                                 .absorb = absorb,
                                 .cap = cap,
                                 .add_alibi = add_alibi,
                                 .add_rows = add_rows,
                                 .add_mask_rows = add_mask_rows,
                                 .hide_rows = hide_rows,
                                 .visibility = visibility,
                                 .add_mask = add_mask,
                                 .add_to_sums = add_to_sums,
                                 .weigh = weigh,
                                 .add_entropy = add_entropy,
                                 .keep_largest = keep_largest,
                                 .add_mass = add_mass,
                                 .count_seen = count_seen,
                                 .add_products = add_products,
                                 .pack = pack,
                                 .unpack = unpack,
                                 .is_finite = is_finite,
                                 .merge = merge,
                                 .widen = widen,
                                 .narrow = narrow,
                                 .fma_burst = fma_burst};
  return &table;
}

#endif  // HEED_HAS_VECTORS

}  // namespace heed::inline v0::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace heed::inline v0::kernels {

HWY_EXPORT(kernel_table);

const std::vector<const KernelTable*>& supported_kernels() {
  static const std::vector<const KernelTable*> tables = [] {
    std::vector<const KernelTable*> found;
    std::int64_t targets = hwy::SupportedTargets() & HWY_TARGETS & ~(HWY_SCALAR | HWY_EMU128);
    while (targets != 0) {
      // The better the instruction set, the lower its bit.
      const std::int64_t target = targets & -targets;
      targets &= targets - 1;
      hwy::SetSupportedTargetsForTest(target);
      hwy::GetChosenTarget().Update(hwy::SupportedTargets());
      found.push_back(HWY_DYNAMIC_DISPATCH(kernel_table)());
    }
    hwy::SetSupportedTargetsForTest(0);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return found;
  }();
  return tables;
}

}  // namespace heed::inline v0::kernels

#endif  // HWY_ONCE
