// Products of many rows of numbers with rows of stored weights, which are converted to floats
// first.
#if defined(HEED_MODELS_PANELS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_MODELS_PANELS_INL_H_
#undef HEED_MODELS_PANELS_INL_H_
#else
#define HEED_MODELS_PANELS_INL_H_
#endif

#include <algorithm>

#include "models/kernels/stored-inl.h"
#include "models/kernels/weight_kernels.h"
#include "models/weight_product.h"
#include "simd/panel_product-inl.h"
#include "simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace models::HWY_NAMESPACE {

namespace registers = kernels::HWY_NAMESPACE::f32;

// A panel is [column][row]: some columns of a few rows of weights, as floats.
inline constexpr int kPanelVectors = 3;
inline constexpr std::int64_t kPanelRows = kPanelVectors * kLanes;

// The columns of a panel: its 24 KB stay in the nearest cache while all rows of numbers are
// multiplied.
inline constexpr std::int64_t kPanelColumns = 2048 / kLanes;
static_assert(kPanelColumns % kWeightBlock == 0);

// The columns that are multiplied at a time: `count` from `first` on.
struct PanelColumns {
  std::int64_t first;
  std::int64_t count;  // at most kPanelColumns
};

// Converts weights to a panel; rows that w does not have are zero.
template <class Decode>
void fill_panel(const WeightRows& w, const PanelColumns& columns, const Decode& decode,
                float* HWY_RESTRICT panel) {
  HWY_ALIGN float rows[kLanes * kPanelColumns];
  std::byte stored[kPanelColumns];  // columns of a row in a group
  for (std::int64_t first = 0; first < kPanelRows; first += kLanes) {
    for (std::int64_t i = 0; i < kLanes; ++i) {
      float* const row = rows + i * kPanelColumns;
      if (first + i < w.num_rows) {
        decode(w.type, stored_columns(w, first + i, columns.first, columns.count, stored),
               columns.count, row);
      } else {
        std::fill_n(row, columns.count, 0.0F);
      }
    }
    for (std::int64_t c = 0; c < columns.count; c += kLanes) {
      Vec square[kLanes];
      for (int i = 0; i < kLanes; ++i) square[i] = hn::Load(kFloats, rows + i * kPanelColumns + c);
      registers::transpose(square);
      const auto count = std::min<std::int64_t>(kLanes, columns.count - c);
      for (std::int64_t j = 0; j < count; ++j) {
        hn::Store(square[j], kFloats, panel + (c + j) * kPanelRows + first);
      }
    }
  }
}

// Multiplies with at most kPanelRows rows of weights.
template <class Decode>
void multiply_decoded(const WeightRows& w, const InputRows& x, const Decode& decode, float* out,
                      std::int64_t out_stride) {
  HWY_ALIGN float panel[kPanelColumns * kPanelRows];
  for (std::int64_t first = 0; first < w.columns; first += kPanelColumns) {
    const PanelColumns columns{first, std::min(kPanelColumns, w.columns - first)};
    fill_panel(w, columns, decode, panel);
    registers::multiply_panel<kPanelVectors>({.a = x.data + first,
                                              .a_stride = x.stride,
                                              .panel = panel,
                                              .steps = columns.count,
                                              .columns = w.num_rows,
                                              .out = out,
                                              .out_stride = out_stride,
                                              .adds = first > 0},
                                             x.num_rows);
  }
}

}}}  // namespace heed::v0::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_MODELS_PANELS_INL_H_
