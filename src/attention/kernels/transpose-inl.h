// Panels are [index][row], tensors [row][index]: from one to the other, a square of lanes at a
// time.
#if defined(HEED_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_TRANSPOSE_INL_H_
#undef HEED_TRANSPOSE_INL_H_
#else
#define HEED_TRANSPOSE_INL_H_
#endif

#include <algorithm>
#include <cstdint>

#include "attention/kernels/exp2-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed::inline v0::kernels::HWY_NAMESPACE {

// Within each block of four lanes, four rows become columns.
template <class D>
HWY_INLINE void transpose_in_blocks(D d, hn::Vec<D>* rows) {
  const hn::RepartitionToWide<D> pairs;
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, rows[0], rows[1]));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, rows[2], rows[3]));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, rows[0], rows[1]));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, rows[2], rows[3]));
  rows[0] = hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23));
  rows[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23));
  rows[2] = hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23));
  rows[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23));
}

// Rows become columns.
HWY_INLINE void transpose(Vec (&rows)[kLanes]) {
  for (int i = 0; i < kLanes; i += 4) transpose_in_blocks(kFloats, rows + i);
    // rows[4g + i] now holds column 4b + i of rows 4g … 4g + 3 in block b: the blocks change
    // places.
#if HWY_TARGET <= HWY_AVX3
  for (int i = 0; i < 4; ++i) {
    const __m512 low01 = _mm512_shuffle_f32x4(rows[i].raw, rows[4 + i].raw, 0x44);
    const __m512 high01 = _mm512_shuffle_f32x4(rows[i].raw, rows[4 + i].raw, 0xEE);
    const __m512 low23 = _mm512_shuffle_f32x4(rows[8 + i].raw, rows[12 + i].raw, 0x44);
    const __m512 high23 = _mm512_shuffle_f32x4(rows[8 + i].raw, rows[12 + i].raw, 0xEE);
    rows[i] = Vec{_mm512_shuffle_f32x4(low01, low23, 0x88)};
    rows[4 + i] = Vec{_mm512_shuffle_f32x4(low01, low23, 0xDD)};
    rows[8 + i] = Vec{_mm512_shuffle_f32x4(high01, high23, 0x88)};
    rows[12 + i] = Vec{_mm512_shuffle_f32x4(high01, high23, 0xDD)};
  }
#elif HWY_TARGET == HWY_AVX2
  for (int i = 0; i < 4; ++i) {
    const Vec lower = hn::ConcatLowerLower(kFloats, rows[4 + i], rows[i]);
    rows[4 + i] = hn::ConcatUpperUpper(kFloats, rows[4 + i], rows[i]);
    rows[i] = lower;
  }
#endif
}

// query[d][r] = factor · rows[r][d] for the dimensions from `d` on, one by one.
inline void pack_rest(const float* const* rows, std::int32_t width, std::int32_t d,
                      std::int32_t head_dim, float factor, float* query) {
  for (std::int32_t r = 0; r < width; ++r) {
    const float* row = rows[r];
    for (std::int32_t i = d; i < head_dim; ++i) {
      query[i * width + r] = row == nullptr ? 0.0F : row[i] * factor;
    }
  }
}

inline void pack(const float* const* rows, std::int32_t width, std::int32_t head_dim, float factor,
                 float* query) {
  const std::int32_t squares = width == 1 ? 0 : head_dim / kLanes * kLanes;
  for (std::int32_t r = 0; r < width; r += kLanes) {
    for (std::int32_t d = 0; d < squares; d += kLanes) {
      Vec square[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        const float* row = rows[r + i];
        square[i] = row == nullptr ? hn::Zero(kFloats)
                                   : hn::Mul(hn::LoadU(kFloats, row + d), hn::Set(kFloats, factor));
      }
      transpose(square);
      for (int i = 0; i < kLanes; ++i) hn::Store(square[i], kFloats, query + (d + i) * width + r);
    }
  }
  pack_rest(rows, width, squares, head_dim, factor, query);
}

// Adding 0 turns −0 into 0.
inline void unpack_rest(const float* out, std::int32_t width, std::int32_t d,
                        std::int32_t value_dim, const float* factors, float* const* rows) {
  for (std::int32_t r = 0; r < width; ++r) {
    if (rows[r] == nullptr) continue;
    for (std::int32_t i = d; i < value_dim; ++i) {
      rows[r][i] = out[i * width + r] * factors[r] + 0.0F;
    }
  }
}

inline void unpack(const float* out, std::int32_t width, std::int32_t value_dim,
                   const float* factors, float* const* rows) {
  const std::int32_t squares = width == 1 ? 0 : value_dim / kLanes * kLanes;
  for (std::int32_t r = 0; r < width; r += kLanes) {
    const Vec factor = hn::Load(kFloats, factors + r);
    for (std::int32_t d = 0; d < squares; d += kLanes) {
      Vec square[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        const Vec sums = hn::Load(kFloats, out + (d + i) * width + r);
        square[i] = hn::MulAdd(sums, factor, hn::Zero(kFloats));
      }
      transpose(square);
      for (int i = 0; i < kLanes; ++i) {
        if (rows[r + i] != nullptr) hn::StoreU(square[i], kFloats, rows[r + i] + d);
      }
    }
  }
  unpack_rest(out, width, squares, value_dim, factors, rows);
}

}  // namespace heed::inline v0::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_TRANSPOSE_INL_H_
