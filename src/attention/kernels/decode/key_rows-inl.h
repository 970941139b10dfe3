// Keys in rows, as those of tensors, transposed to the columns that a cache has.
#if defined(HEED_KEY_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_KEY_ROWS_INL_H_
#undef HEED_KEY_ROWS_INL_H_
#else
#define HEED_KEY_ROWS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "attention/kernels/decode/stored-inl.h"
#include "hwy/highway.h"
#include "simd/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// The number of dimensions that are transposed at a time, from rows of kLanes keys to columns
// [dimension][kLanes]: so few that a processor can transpose the next ones while it multiplies
// these.
constexpr std::int32_t kRowDims = 16;

// Transposes `dims` numbers of the size of Real from each row; `dims` is a multiple of kBlockLanes,
// and row i is at row_at(i).
template <class RowAt>
HWY_INLINE void to_columns(const RowAt& row_at, std::int32_t dims, Real* columns) {
  for (std::int32_t d = 0; d < dims; d += kBlockLanes) {
    Vec square[kBlockLanes];
    for (int i = 0; i < kBlockLanes; ++i) {
      const std::byte* at[kBlocks];
      for (int b = 0; b < kBlocks; ++b) {
        at[b] = row_at(b * kBlockLanes + i) + d * static_cast<int>(sizeof(Real));
      }
      square[i] = load_blocks(at);
    }
    transpose_in_blocks(square);
    for (int i = 0; i < kBlockLanes; ++i) hn::Store(square[i], kReals, columns + (d + i) * kLanes);
  }
}

#if HEED_REAL_BITS == 32 && HWY_TARGET <= HWY_AVX2
// Transposes 16-bit numbers; `dims` is a multiple of 16.
template <class RowAt>
HWY_INLINE void to_columns(const RowAt& row_at, std::int32_t dims, std::uint16_t* columns) {
  const hn::Repartition<std::uint16_t, Reals> words;
  const hn::Repartition<std::uint64_t, Reals> quads;
  const hn::Half<decltype(words)> half;
  for (std::int32_t d = 0; d < dims; d += 16) {
    hn::Vec<decltype(words)> square[8];
    for (int i = 0; i < 8; ++i) {
      const std::byte* row = row_at(i) + d * 2;
#if HWY_TARGET <= HWY_AVX3
      const std::byte* other = row_at(i + 8) + d * 2;
      square[i] = hn::BitCast(words, load_blocks({row, other, row + 16, other + 16}));
#else
      square[i] = hn::LoadU(words, reinterpret_cast<const std::uint16_t*>(row));
#endif
    }
    // Interleaves two rows of each block, then four, then eight.
    BitVec two[8];
    for (int i = 0; i < 8; i += 2) {
      two[i] = hn::BitCast(kBits, hn::InterleaveLower(words, square[i], square[i + 1]));
      two[i + 1] = hn::BitCast(kBits, hn::InterleaveUpper(words, square[i], square[i + 1]));
    }
    hn::Vec<decltype(quads)> four[8];
    for (int i = 0; i < 8; i += 4) {
      for (int k = 0; k < 2; ++k) {
        const BitVec low = two[i + k];
        const BitVec high = two[i + 2 + k];
        four[i + 2 * k] = hn::BitCast(quads, hn::InterleaveLower(kBits, low, high));
        four[i + 2 * k + 1] = hn::BitCast(quads, hn::InterleaveUpper(kBits, low, high));
      }
    }
    const auto store = [&](hn::Vec<decltype(quads)> eight, int i) HWY_ATTR {
      std::uint16_t* at = columns + (d + i) * kLanes;
      hn::Store(hn::LowerHalf(half, hn::BitCast(words, eight)), half, at);
      hn::Store(hn::UpperHalf(half, hn::BitCast(words, eight)), half, at + 8 * kLanes);
    };
    for (int k = 0; k < 4; ++k) {
      store(hn::InterleaveLower(quads, four[k], four[4 + k]), 2 * k);
      store(hn::InterleaveUpper(quads, four[k], four[4 + k]), 2 * k + 1);
    }
  }
}
#endif

// A vector of keys in rows, from `lane` on. If there are fewer than kLanes, the other lanes repeat
// the last of them; if there is none, all lanes have the group's first key.
template <class Numbers>
struct KeyRows {
  // The vectors of one group: with more, too many rows of memory would be read side by side.
  static constexpr int kMostVectors = kGroupKeys / kLanes;
  // True if narrow numbers are widened before they are transposed, as a vector has too few lanes
  // for a square of them.
  static constexpr bool kIsWidened = Numbers::kBytes < static_cast<int>(sizeof(Real)) && kLanes < 8;
  using Column = std::conditional_t<kIsWidened, Real, typename Numbers::Element>;
  static constexpr std::int32_t kDims = kRowDims;
  // The unit of dimensions of to_columns().
  static constexpr std::int32_t kStep = sizeof(Column) == 2 ? 16 : kBlockLanes;

  const std::byte* first;
  std::int64_t stride;
  int count;
  std::int32_t head_dim;
  HWY_ALIGN Column columns[kRowDims * kLanes];

  HWY_INLINE void start(const StoredNumbers& keys, std::size_t group, int lane, int there_are,
                        std::int32_t dim) {
    stride = keys.row_stride;
    first = keys.groups[group] + (there_are > 0 ? lane * stride : 0);
    count = std::clamp(there_are, 1, kLanes);
    head_dim = dim;
  }

  HWY_INLINE void start_dims(std::int32_t d) {
    const std::int32_t dims = std::min(kRowDims, head_dim - d);
    const std::byte* rows = first + std::int64_t{d} * Numbers::kBytes;
    if (!kIsWidened && count == kLanes && dims == kRowDims) {
      to_columns([&](int i) HWY_ATTR { return rows + i * stride; }, kRowDims, columns);
    } else {
      some_to_columns(rows, dims);
    }
  }

  // Fetches as many bytes, further on in keys that are read in order, as start_dims(d) transposes.
  HWY_INLINE void fetch_ahead(std::int32_t d) const {
    constexpr std::int32_t kBytes = kLanes * Numbers::kBytes;
    kernels::fetch_ahead(first + std::int64_t{d} * kBytes, kRowDims * kBytes);
  }

  HWY_INLINE Vec load(std::int32_t d) const {
    const Column* at = columns + d * kLanes;
    if constexpr (kIsWidened) {
      return hn::Load(kReals, at);
    } else {
      return Numbers::load(reinterpret_cast<const std::byte*>(at));
    }
  }

 private:
  // Transposes fewer keys or dimensions; the last key stands for the missing ones.
  HWY_NOINLINE void some_to_columns(const std::byte* rows, std::int32_t dims) {
    if (!kIsWidened && count == 1) return one_to_columns(rows, dims);
    const std::byte* at[kLanes];
    for (int i = 0; i < kLanes; ++i) at[i] = rows + std::min(i, count - 1) * stride;
    const auto row_at = [&](int i) HWY_ATTR { return at[i]; };
    if (!kIsWidened && dims % kStep == 0) return to_columns(row_at, dims, columns);
    HWY_ALIGN Column copy[kLanes * kRowDims] = {};
    for (int i = 0; i < kLanes; ++i) {
      if (i < count) copy_row(at[i], dims, copy + i * kRowDims);
      at[i] = reinterpret_cast<const std::byte*>(copy + i * kRowDims);
    }
    to_columns(row_at, kRowDims, columns);
  }
  HWY_INLINE void one_to_columns(const std::byte* key, std::int32_t dims) {
    for (std::int32_t d = 0; d < dims; ++d) {
      Column number;
      std::memcpy(&number, key + d * static_cast<int>(sizeof(Column)), sizeof(Column));
      std::fill_n(columns + d * kLanes, kLanes, number);
    }
  }
  static HWY_INLINE void copy_row(const std::byte* row, std::int32_t dims, Column* copy) {
    if constexpr (kIsWidened) {
      Numbers::widen(row, dims, copy);
    } else {
      std::memcpy(copy, row, static_cast<std::size_t>(dims) * Numbers::kBytes);
    }
  }
};

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_KEY_ROWS_INL_H_
