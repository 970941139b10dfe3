// Transposition between panels, [index][row], and tensors, [row][index], a square of lanes at a
// time.
#if defined(HEED_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_TRANSPOSE_INL_H_
#undef HEED_TRANSPOSE_INL_H_
#else
#define HEED_TRANSPOSE_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "simd/reals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// The number of lanes of a block of 16 bytes of a vector.
constexpr int kBlockLanes = 16 / sizeof(Real);

constexpr int kBlocks = kLanes / kBlockLanes;

// Loads a block of 16 bytes from each of as many addresses as a vector has blocks.
HWY_INLINE Vec load_blocks(const std::byte* const (&at)[kBlocks]) {
#if HWY_TARGET <= HWY_AVX3
  const auto block = [&](int i) HWY_ATTR {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at[i]));
  };
  // Blocks inserted from memory do not need the only port that shuffles.
  __m512i blocks = _mm512_castsi128_si512(block(0));
  blocks = _mm512_inserti32x4(blocks, block(1), 1);
  blocks = _mm512_inserti32x4(blocks, block(2), 2);
  blocks = _mm512_inserti32x4(blocks, block(3), 3);
  return hn::BitCast(kReals, hn::Vec<hn::Repartition<std::int32_t, Reals>>{blocks});
#elif HWY_TARGET == HWY_AVX2
  const hn::Half<Reals> half;
  const auto load = [&](int i)
                        HWY_ATTR { return hn::LoadU(half, reinterpret_cast<const Real*>(at[i])); };
  return hn::Combine(kReals, load(1), load(0));
#else
  return hn::LoadU(kReals, reinterpret_cast<const Real*>(at[0]));
#endif
}

// Transposes kBlockLanes rows within each block of lanes.
HWY_INLINE void transpose_in_blocks(Vec* rows) {
#if HEED_REAL_BITS == 32
  const hn::RepartitionToWide<Reals> pairs;
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(kReals, rows[0], rows[1]));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(kReals, rows[2], rows[3]));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(kReals, rows[0], rows[1]));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(kReals, rows[2], rows[3]));
  rows[0] = hn::BitCast(kReals, hn::InterleaveLower(pairs, low01, low23));
  rows[1] = hn::BitCast(kReals, hn::InterleaveUpper(pairs, low01, low23));
  rows[2] = hn::BitCast(kReals, hn::InterleaveLower(pairs, high01, high23));
  rows[3] = hn::BitCast(kReals, hn::InterleaveUpper(pairs, high01, high23));
#else
  const Vec low = hn::InterleaveLower(kReals, rows[0], rows[1]);
  rows[1] = hn::InterleaveUpper(kReals, rows[0], rows[1]);
  rows[0] = low;
#endif
}

#if HWY_TARGET <= HWY_AVX3
// Two blocks of a and two of b, selected by two bits each.
template <int kBlocks>
HWY_INLINE Vec choose_blocks(Vec a, Vec b) {
#if HEED_REAL_BITS == 32
  return Vec{_mm512_shuffle_f32x4(a.raw, b.raw, kBlocks)};
#else
  return Vec{_mm512_shuffle_f64x2(a.raw, b.raw, kBlocks)};
#endif
}
#endif

// Transposes a square of kLanes rows.
HWY_INLINE void transpose(Vec (&rows)[kLanes]) {
  constexpr int kStep = kBlockLanes;
  for (int i = 0; i < kLanes; i += kStep) transpose_in_blocks(rows + i);
    // rows[g · kStep + i] has in block b column b · kStep + i of the rows from g · kStep on; now
    // the blocks are exchanged.
#if HWY_TARGET <= HWY_AVX3
  for (int i = 0; i < kStep; ++i) {
    const Vec low01 = choose_blocks<0x44>(rows[i], rows[kStep + i]);
    const Vec high01 = choose_blocks<0xEE>(rows[i], rows[kStep + i]);
    const Vec low23 = choose_blocks<0x44>(rows[2 * kStep + i], rows[3 * kStep + i]);
    const Vec high23 = choose_blocks<0xEE>(rows[2 * kStep + i], rows[3 * kStep + i]);
    rows[i] = choose_blocks<0x88>(low01, low23);
    rows[kStep + i] = choose_blocks<0xDD>(low01, low23);
    rows[2 * kStep + i] = choose_blocks<0x88>(high01, high23);
    rows[3 * kStep + i] = choose_blocks<0xDD>(high01, high23);
  }
#elif HWY_TARGET == HWY_AVX2
  for (int i = 0; i < kStep; ++i) {
    const Vec lower = hn::ConcatLowerLower(kReals, rows[kStep + i], rows[i]);
    rows[kStep + i] = hn::ConcatUpperUpper(kReals, rows[kStep + i], rows[i]);
    rows[i] = lower;
  }
#endif
}

// Transposes a square of kLanes numbers of each of kLanes rows from `first` on; row i begins at
// data + i · stride. Beyond row last − 1 it repeats that row.
HWY_INLINE void load_columns(const Real* data, std::int64_t stride, std::int64_t first,
                             std::int64_t last, Vec (&columns)[kLanes]) {
  for (int i = 0; i < kLanes; ++i) {
    columns[i] = hn::Load(kReals, data + std::min<std::int64_t>(first + i, last - 1) * stride);
  }
  transpose(columns);
}

// The factors of the rows of a panel: the same for all, one for each, or none.
struct SameFactor {
  Real factor;

  Real of_row(std::int32_t) const { return factor; }
  HWY_INLINE Vec of_vector(std::int32_t) const { return hn::Set(kReals, factor); }
};
struct RowFactors {
  const Real* factors;

  Real of_row(std::int32_t r) const { return factors[r]; }
  HWY_INLINE Vec of_vector(std::int32_t first_row) const {
    return hn::LoadU(kReals, factors + first_row);
  }
};
struct NoFactor {
  HWY_INLINE NoFactor of_vector(std::int32_t) const { return {}; }
};
HWY_INLINE Vec multiplied(Vec numbers, Vec factor) { return hn::Mul(numbers, factor); }
HWY_INLINE Vec multiplied(Vec numbers, NoFactor) { return numbers; }

// packed[d][r] = factor · rows[r][d] for the dimensions from `d` on, one by one.
template <class Factors>
void pack_rest(const Real* const* rows, std::int32_t width, std::int32_t d, std::int32_t dim,
               const Factors& factors, Real* packed) {
  for (std::int32_t r = 0; r < width; ++r) {
    const Real* row = rows[r];
    const Real factor = factors.of_row(r);
    if (row == nullptr) {
      for (std::int32_t i = d; i < dim; ++i) packed[i * width + r] = 0;
    } else if (width == 1) {
      for (std::int32_t i = d; i < dim; ++i) packed[i] = row[i] * factor;
    } else {
      for (std::int32_t i = d; i < dim; ++i) packed[i * width + r] = row[i] * factor;
    }
  }
}

// Calls use(d, column) for the first `dims` dimensions, a multiple of kBlockLanes, of a vector of
// rows; the column has number d of each row.
template <class Use>
HWY_INLINE void visit_columns(const Real* const* rows, std::int32_t dims, const Use& use) {
  for (std::int32_t d = 0; d < dims; d += kBlockLanes) {
    Vec square[kBlockLanes];
    for (int i = 0; i < kBlockLanes; ++i) {
      const std::byte* at[kBlocks];
      for (int b = 0; b < kBlocks; ++b) {
        at[b] = reinterpret_cast<const std::byte*>(rows[b * kBlockLanes + i] + d);
      }
      square[i] = load_blocks(at);
    }
    transpose_in_blocks(square);
    for (int i = 0; i < kBlockLanes; ++i) use(d + i, square[i]);
  }
}

// A vector of rows of which some, but not all, may not exist; another row is read in their place.
struct SomeRows {
  const Real* rows[kLanes];
  hn::Mask<Reals> exist;

  HWY_INLINE explicit SomeRows(const Real* const* all) {
    HWY_ALIGN Real numbers[kLanes];
    const Real* last = nullptr;
    for (int i = 0; i < kLanes; ++i) last = all[i] != nullptr ? all[i] : last;
    for (int i = 0; i < kLanes; ++i) {
      numbers[i] = all[i] != nullptr ? 1.0F : 0.0F;
      rows[i] = all[i] != nullptr ? all[i] : last;
    }
    exist = hn::Ne(hn::Load(kReals, numbers), hn::Zero(kReals));
  }
};

// packed[d][r] = factor · rows[r][d] for as many of the first dimensions as whole vectors have.
// Returns their number.
template <class Factors>
std::int32_t pack_in_vectors(const Real* const* rows, std::int32_t width, std::int32_t dim,
                             const Factors& factors, Real* packed) {
  const std::int32_t dims = width % kLanes != 0 ? 0 : dim / kBlockLanes * kBlockLanes;
  for (std::int32_t r = 0; r < width && dims > 0; r += kLanes) {
    const auto missing = std::count(rows + r, rows + r + kLanes, nullptr);
    const auto factor = factors.of_vector(r);
    if (missing == 0) {
      visit_columns(rows + r, dims, [&](std::int32_t d, Vec column) HWY_ATTR {
        hn::Store(multiplied(column, factor), kReals, packed + d * width + r);
      });
    } else if (missing < kLanes) {
      const SomeRows some(rows + r);
      visit_columns(some.rows, dims, [&](std::int32_t d, Vec column) HWY_ATTR {
        const Vec numbers = hn::IfThenElseZero(some.exist, multiplied(column, factor));
        hn::Store(numbers, kReals, packed + d * width + r);
      });
    } else {
      for (std::int32_t d = 0; d < dims; ++d) {
        hn::Store(hn::Zero(kReals), kReals, packed + d * width + r);
      }
    }
  }
  return dims;
}

template <class Factors>
void pack_by(const Real* const* rows, std::int32_t width, std::int32_t dim, const Factors& factors,
             Real* packed) {
  const std::int32_t packed_dims = pack_in_vectors(rows, width, dim, factors, packed);
  pack_rest(rows, width, packed_dims, dim, factors, packed);
}

inline void pack(const Real* const* rows, std::int32_t width, std::int32_t dim, Real factor,
                 Real* packed) {
  pack_by(rows, width, dim, SameFactor{factor}, packed);
}

// Adding 0 turns −0 into 0.
inline void unpack_rest(const Real* out, std::int32_t width, std::int32_t d, std::int32_t value_dim,
                        const Real* factors, Real* const* rows) {
  for (std::int32_t r = 0; r < width; ++r) {
    if (rows[r] == nullptr) continue;
    for (std::int32_t i = d; i < value_dim; ++i) {
      rows[r][i] = out[i * width + r] * factors[r] + 0.0F;
    }
  }
}

inline void unpack(const Real* out, std::int32_t width, std::int32_t value_dim, const Real* factors,
                   Real* const* rows) {
  const std::int32_t squares = value_dim / kLanes * kLanes;
  for (std::int32_t r = 0; r < width; r += kLanes) {
    const Vec factor = hn::Load(kReals, factors + r);
    for (std::int32_t d = 0; d < squares; d += kLanes) {
      Vec square[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        const Vec sums = hn::Load(kReals, out + (d + i) * width + r);
        square[i] = hn::MulAdd(sums, factor, hn::Zero(kReals));
      }
      transpose(square);
      for (int i = 0; i < kLanes; ++i) {
        if (rows[r + i] != nullptr) hn::StoreU(square[i], kReals, rows[r + i] + d);
      }
    }
  }
  unpack_rest(out, width, squares, value_dim, factors, rows);
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_TRANSPOSE_INL_H_
