#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels/kernels.cc"
#include "hwy/foreach_target.h"
// foreach_target comes first: it includes this file once for each instruction set.
#include "attention/kernels/kernels.h"
#include "attention/kernels/panel-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed::inline v0::kernels::HWY_NAMESPACE {

template <template <int> class Call, class... Arguments>
void by_width(std::int32_t vectors, Arguments&&... arguments) {
  switch (vectors) {
    case 1:
      return Call<1>::run(arguments...);
    case 2:
      return Call<2>::run(arguments...);
    default:
      return Call<3>::run(arguments...);
  }
}

template <int kVectors>
struct Attend {
  static void run(const Tile& tile, Panel& panel, float* weights) {
    PanelKernel<kVectors>(tile, panel, weights).attend();
  }
};
void attend(const Tile& tile, Panel& panel, float* weights) {
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
  static void run(const Tile& tile, Panel& panel, float* scores, const float* dropout) {
    PanelKernel<kVectors>(tile, panel, scores).absorb(dropout);
  }
};
void absorb(const Tile& tile, Panel& panel, float* scores, const float* dropout) {
  by_width<Absorb>(panel.vectors, tile, panel, scores, dropout);
}

void pack(const float* const* rows, std::int32_t width, std::int32_t head_dim, float factor,
          float* query) {
  for (std::int32_t r = 0; r < width; ++r) {
    const float* row = rows[r];
    for (std::int32_t d = 0; d < head_dim; ++d) {
      query[d * width + r] = row == nullptr ? 0.0F : row[d] * factor;
    }
  }
}

bool is_finite(const Panel& panel, const PanelState& state) {
  const std::int32_t width = panel.vectors * kLanes;
  // 0 · x is 0 unless x is infinite or NaN.
  Vec products = hn::Zero(kFloats);
  const auto multiply_in = [&products](const float* at) HWY_ATTR {
    products = hn::MulAdd(hn::Load(kFloats, at), hn::Zero(kFloats), products);
  };
  for (std::int32_t r = 0; r < width; r += kLanes) multiply_in(state.sum + r);
  for (std::int32_t i = 0; i < panel.value_dim * width; i += kLanes) multiply_in(state.out + i);
  return hn::AllTrue(kFloats, hn::Eq(products, hn::Zero(kFloats)));
}

// Both states become sums over the same m, the larger one; the one over no key counts for nothing.
void merge(const Panel& panel, const PanelState& part, const PanelState& total) {
  const std::int32_t width = panel.vectors * kLanes;
  const auto empty = hn::Set(kFloats, kMinusInfinity);
  for (std::int32_t r = 0; r < width; r += kLanes) {
    const Vec part_minus_m = hn::Load(kFloats, part.minus_m + r);
    const Vec total_minus_m = hn::Load(kFloats, total.minus_m + r);
    const auto part_empty = hn::Eq(hn::Load(kFloats, part.threshold + r), empty);
    const auto total_empty = hn::Eq(hn::Load(kFloats, total.threshold + r), empty);
    Vec minus_m = hn::Min(part_minus_m, total_minus_m);
    minus_m = hn::IfThenElse(part_empty, total_minus_m, minus_m);
    minus_m = hn::IfThenElse(total_empty, part_minus_m, minus_m);
    const Vec part_factor = hn::IfThenZeroElse(part_empty, exp2(hn::Sub(minus_m, part_minus_m)));
    const Vec total_factor = hn::IfThenZeroElse(total_empty, exp2(hn::Sub(minus_m, total_minus_m)));
    hn::Store(minus_m, kFloats, total.minus_m + r);
    hn::Store(
        hn::IfThenElse(hn::And(part_empty, total_empty), empty, hn::Set(kFloats, kLargestExponent)),
        kFloats, total.threshold + r);
    const auto combine = [&](float* total_at, float* part_at) HWY_ATTR {
      const Vec scaled = hn::Mul(hn::Load(kFloats, total_at), total_factor);
      hn::Store(hn::MulAdd(hn::Load(kFloats, part_at), part_factor, scaled), kFloats, total_at);
      hn::Store(hn::Zero(kFloats), kFloats, part_at);
    };
    combine(total.sum + r, part.sum + r);
    for (std::int32_t d = 0; d < panel.value_dim; ++d) {
      combine(total.out + d * width + r, part.out + d * width + r);
    }
  }
}

const KernelTable* kernel_table() {
  static const KernelTable table{
      hwy::TargetName(HWY_TARGET), kLanes, attend, score, absorb, pack, is_finite, merge};
  return &table;
}

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
