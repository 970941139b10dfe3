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
#include "simd/register_block-inl.h"
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

// The columns that one sum covers. For 1536 columns, summing in parts of this size has a quarter of
// the error of a single sum.
inline constexpr std::int64_t kSummedColumns = 64;

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

// sums[i][v] = Σ_c x[i][c] · panel[c][v] for `count` columns.
template <int kRows>
HWY_INLINE void sum_columns(const float* x, std::int64_t x_stride, const float* panel,
                            std::int64_t count, Vec (&sums)[kRows][kPanelVectors]) {
  for (int i = 0; i < kRows; ++i) {
    for (int v = 0; v < kPanelVectors; ++v) sums[i][v] = hn::Zero(kFloats);
  }
  registers::multiply_add<0, kPanelVectors>({x, x_stride, 1}, panel,
                                            static_cast<std::int32_t>(count), sums);
}

// out[i · out_stride + r] (+)= Σ_c x[i][c] · panel[c][r] for kRows rows of x and `count` columns of
// the panel. Partial sums of kSummedColumns are added up, which rounds less than one long sum.
template <int kRows>
HWY_INLINE void multiply_block(const InputRows& x, const PanelColumns& columns, const float* panel,
                               std::int64_t count, float* out, std::int64_t out_stride) {
  HWY_ALIGN float part[kRows * kPanelRows];
  const bool is_whole = count == kPanelRows;
  float* const results = is_whole ? out : part;
  const std::int64_t stride = is_whole ? out_stride : kPanelRows;
  for (int i = 0; i < kRows && !is_whole; ++i) {
    std::copy_n(out + i * out_stride, count, part + i * kPanelRows);
  }
  for (std::int64_t c = 0; c < columns.count; c += kSummedColumns) {
    Vec sums[kRows][kPanelVectors];
    sum_columns<kRows>(x.data + columns.first + c, x.stride, panel + c * kPanelRows,
                       std::min(kSummedColumns, columns.count - c), sums);
    const bool is_first = columns.first + c == 0;
    for (int i = 0; i < kRows; ++i) {
      for (int v = 0; v < kPanelVectors; ++v) {
        float* const at = results + i * stride + v * kLanes;
        hn::StoreU(is_first ? sums[i][v] : hn::Add(hn::LoadU(kFloats, at), sums[i][v]), kFloats,
                   at);
      }
    }
  }
  for (int i = 0; i < kRows && !is_whole; ++i) {
    std::copy_n(part + i * kPanelRows, count, out + i * out_stride);
  }
}

// Multiplies kRows rows of x at a time, then the rest with half as many.
template <int kRows>
HWY_INLINE void multiply_blocks(const InputRows& x, const PanelColumns& columns, const float* panel,
                                std::int64_t count, float* out, std::int64_t out_stride) {
  std::int64_t i = 0;
  for (; i + kRows <= x.num_rows; i += kRows) {
    multiply_block<kRows>(x.slice(i, i + kRows), columns, panel, count, out + i * out_stride,
                          out_stride);
  }
  if constexpr (kRows > 1) {
    multiply_blocks<kRows / 2>(x.slice(i, x.num_rows), columns, panel, count, out + i * out_stride,
                               out_stride);
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
    multiply_blocks<registers::kRegisterRows>(x, columns, panel, w.num_rows, out, out_stride);
  }
}

}}}  // namespace heed::v0::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_MODELS_PANELS_INL_H_
