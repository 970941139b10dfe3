// The functions of ProductKernels for floats, or for doubles where HEED_REAL_BITS is 64.
#if defined(HEED_NN_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_NN_PRODUCTS_INL_H_
#undef HEED_NN_PRODUCTS_INL_H_
#else
#define HEED_NN_PRODUCTS_INL_H_
#endif

#include <algorithm>

#include "nn/kernels/products.h"
#include "simd/panel_product-inl.h"
#include "simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace nn::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace registers = kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE;

using registers::kLanes;
using registers::kReals;
using Real = registers::Real;
using Vec = registers::Vec;
using Operands = ProductOperands<Real>;

// A panel is [step][column]: some steps of a few columns of b.
inline constexpr int kMostVectors = 3;
inline constexpr std::int64_t kPanelColumns = kMostVectors * kLanes;
// A panel of 24 KB stays in the nearest cache while all rows of a are multiplied with it.
inline constexpr std::int64_t kPanelSteps = 8192 / sizeof(Real) / kLanes;
static_assert(kPanelSteps % kernels::kSummedSteps == 0);

// Some steps and columns of the operands.
struct Part {
  std::int64_t first_step, steps;
  std::int64_t first_column, columns;
};

// Writes panels of kVectors vectors; columns that b does not have are zero.
template <int kVectors>
void fill_panel(const Operands& x, const Part& part, Real* HWY_RESTRICT panel) {
  constexpr int kWidth = kVectors * kLanes;
  const Real* const b = x.b + part.first_step * x.b_stride + part.first_column * x.b_column_stride;
  if (x.b_stride == 1) {
    const Real* columns[kWidth];
    for (int j = 0; j < kWidth; ++j) {
      columns[j] = j < part.columns ? b + j * x.b_column_stride : nullptr;
    }
    registers::pack(columns, kWidth, static_cast<std::int32_t>(part.steps), 1, panel);
    return;
  }
  for (std::int64_t step = 0; step < part.steps; ++step) {
    const Real* const from = b + step * x.b_stride;
    Real* const to = panel + step * kWidth;
    if (x.b_column_stride == 1 && part.columns == kWidth) {
      HEED_UNROLL for (int v = 0; v < kVectors; ++v) {
        hn::Store(hn::LoadU(kReals, from + v * kLanes), kReals, to + v * kLanes);
      }
      continue;
    }
    for (std::int64_t j = 0; j < part.columns; ++j) to[j] = from[j * x.b_column_stride];
    std::fill(to + part.columns, to + kWidth, Real{0});
  }
}

template <int kVectors>
void multiply_part(const Operands& x, const Part& part) {
  HWY_ALIGN Real panel[kPanelSteps * kVectors * kLanes];
  fill_panel<kVectors>(x, part, panel);
  registers::multiply_panel<kVectors>({.a = x.a + part.first_step,
                                       .a_stride = x.a_stride,
                                       .panel = panel,
                                       .steps = part.steps,
                                       .columns = part.columns,
                                       .out = x.out + part.first_column,
                                       .out_stride = x.out_stride,
                                       .adds = x.adds || part.first_step > 0},
                                      x.rows);
}

inline void multiply(const Operands& x) {
  static_assert(kMostVectors == 3);
  for (std::int64_t column = 0; column < x.columns; column += kPanelColumns) {
    const std::int64_t columns = std::min(kPanelColumns, x.columns - column);
    for (std::int64_t step = 0; step < x.steps; step += kPanelSteps) {
      const Part part{step, std::min(kPanelSteps, x.steps - step), column, columns};
      if (columns <= kLanes) {
        multiply_part<1>(x, part);
      } else if (columns <= 2 * kLanes) {
        multiply_part<2>(x, part);
      } else {
        multiply_part<3>(x, part);
      }
    }
  }
}

}}}  // namespace heed::v0::nn::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_NN_PRODUCTS_INL_H_
