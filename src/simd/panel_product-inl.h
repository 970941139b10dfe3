// The product of rows with a panel of columns, in parts of kSummedSteps.
#if defined(HEED_PANEL_PRODUCT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_PANEL_PRODUCT_INL_H_
#undef HEED_PANEL_PRODUCT_INL_H_
#else
#define HEED_PANEL_PRODUCT_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "hwy/highway.h"
#include "simd/register_block-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// out[i][j] (+)= Σ_step a[i][step] · panel[step][j], for `columns` of the columns of the panel.
struct PanelProduct {
  const Real* a;
  std::int64_t a_stride;
  const Real* panel;  // [steps][whole vectors]
  std::int64_t steps;
  std::int64_t columns;
  Real* out;
  std::int64_t out_stride;
  bool adds;  // to what `out` has
};

// Computes kRows rows from `row` on. Each part of kSummedSteps is a chain of multiply-adds; adding
// parts rounds less than one long chain.
template <int kVectors, int kRows>
HWY_INLINE void multiply_panel_rows(const PanelProduct& x, std::int64_t row) {
  constexpr int kWidth = kVectors * kLanes;
  HWY_ALIGN Real few[kRows * kWidth];
  Real* const out = x.out + row * x.out_stride;
  const bool is_whole = x.columns == kWidth;
  Real* const results = is_whole ? out : few;
  const std::int64_t stride = is_whole ? x.out_stride : kWidth;
  for (int i = 0; i < kRows && !is_whole; ++i) {
    std::copy_n(out + i * x.out_stride, x.columns, few + i * kWidth);
  }
  for (std::int64_t step = 0; step < x.steps; step += kSummedSteps) {
    Vec sums[kRows][kVectors];
    HEED_UNROLL for (int i = 0; i < kRows; ++i) {
      HEED_UNROLL for (int v = 0; v < kVectors; ++v) sums[i][v] = hn::Zero(kReals);
    }
    const auto steps = static_cast<std::int32_t>(std::min(kSummedSteps, x.steps - step));
    multiply_add<0, kVectors>({x.a + row * x.a_stride + step, x.a_stride, 1},
                              x.panel + step * kWidth, steps, sums);
    const bool adds = x.adds || step > 0;
    HEED_UNROLL for (int i = 0; i < kRows; ++i) {
      HEED_UNROLL for (int v = 0; v < kVectors; ++v) {
        Real* const at = results + i * stride + v * kLanes;
        hn::StoreU(adds ? hn::Add(hn::LoadU(kReals, at), sums[i][v]) : sums[i][v], kReals, at);
      }
    }
  }
  for (int i = 0; i < kRows && !is_whole; ++i) {
    std::copy_n(few + i * kWidth, x.columns, out + i * x.out_stride);
  }
}

// Computes the rows from `first` on: kRows at a time, then the rest with half as many.
template <int kVectors, int kRows = kRegisterRows>
HWY_INLINE void multiply_panel(const PanelProduct& x, std::int64_t rows, std::int64_t first = 0) {
  std::int64_t row = first;
  for (; row + kRows <= rows; row += kRows) multiply_panel_rows<kVectors, kRows>(x, row);
  if constexpr (kRows > 1) multiply_panel<kVectors, kRows / 2>(x, rows, row);
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_PANEL_PRODUCT_INL_H_
