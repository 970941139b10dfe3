// The numbers of a stored tile as vectors: of keys that are columns, one of whose dimensions fills
// the lanes, and of values, whose lanes are columns. A number of 8 or 4 bits is float(number) ·
// scale, rounded once.
#if defined(HEED_STORED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_STORED_INL_H_
#undef HEED_STORED_INL_H_
#else
#define HEED_STORED_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "attention/kernels/reals-inl.h"
#include "attention/kernels/stored_tile.h"
#include "hwy/highway.h"
#if HEED_REAL_BITS == 32
#include "attention/kernels/half-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace heed::inline v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// Numbers that need no scale, kLanes of them from any address.

struct RealNumbers {
  using Element = Real;
  static constexpr int kBytes = sizeof(Element);
  static HWY_INLINE Vec load(const std::byte* at) {
    return hn::LoadU(kReals, reinterpret_cast<const Real*>(at));
  }
};

#if HEED_REAL_BITS == 32
template <class Format>
struct HalfNumbers {
  using Element = std::uint16_t;
  static constexpr int kBytes = sizeof(Element);
  static HWY_INLINE Vec load(const std::byte* at) {
    return Format::to_floats(hn::LoadU(HalfWords(), reinterpret_cast<const std::uint16_t*>(at)));
  }
  static void widen(const std::byte* row, std::int32_t count, float* numbers) {
    widen_all<Format>(row, count, numbers);
  }
};

HWY_INLINE Vec load_int8(const std::byte* at) {
  const hn::Rebind<std::int8_t, Reals> bytes;
  const auto numbers = hn::LoadU(bytes, reinterpret_cast<const std::int8_t*>(at));
  return hn::ConvertTo(kReals, hn::PromoteTo(Indices(), numbers));
}

// Two numbers in each of kLanes bytes.
HWY_INLINE BitVec load_pairs(const std::byte* at) {
  const hn::Rebind<std::uint8_t, Reals> bytes;
  return hn::PromoteTo(kBits, hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(at)));
}

#if HWY_TARGET <= HWY_AVX3
// What four bits may say, in their order.
HWY_INLINE Vec int4_numbers() {
  return Vec{_mm512_set_ps(7, 6, 5, 4, 3, 2, 1, 0, -1, -2, -3, -4, -5, -6, -7, -8)};
}
#endif

// A number for each lane, from its lowest four bits, whatever is above them.
HWY_INLINE Vec int4_to_reals(BitVec words) {
#if HWY_TARGET <= HWY_AVX3
  return Vec{_mm512_permutexvar_ps(words.raw, int4_numbers().raw)};
#else
  const auto nibbles = hn::BitCast(Indices(), hn::And(words, hn::Set(kBits, 15)));
  return hn::ConvertTo(kReals, hn::Sub(nibbles, hn::Set(Indices(), 8)));
#endif
}

// The same times a scale that all lanes have.
HWY_INLINE Vec scaled_int4(BitVec words, float scale) {
#if HWY_TARGET <= HWY_AVX3
  const Vec numbers = hn::Mul(int4_numbers(), hn::Set(kReals, scale));
  return Vec{_mm512_permutexvar_ps(words.raw, numbers.raw)};
#else
  return hn::Mul(int4_to_reals(words), hn::Set(kReals, scale));
#endif
}
#endif

// Dimensions that are taken together: those that share a scale.
constexpr std::int32_t kColumnDims = kScaleDims;

// A vector of keys that are columns: the dimensions of kLanes neighbouring keys of one group, from
// its lane on. start_dims(d) comes before the kColumnDims dimensions from d on; of these, `kOdd`
// says whether a dimension is odd.

template <class Numbers>
struct PlainColumns {
  static constexpr int kMostVectors = 8;

  const std::byte* at;

  HWY_INLINE void start(const StoredNumbers& keys, std::size_t group, int lane, int, std::int32_t) {
    at = keys.groups[group] + lane * Numbers::kBytes;
  }
  HWY_INLINE void start_dims(std::int32_t) {}
  template <int kOdd>
  HWY_INLINE Vec load(std::int32_t d) const {
    return Numbers::load(at + std::int64_t{d} * (kGroupKeys * Numbers::kBytes));
  }
};

#if HEED_REAL_BITS == 32
struct Int8Columns {
  static constexpr int kMostVectors = 8;

  const std::byte* at = nullptr;
  Vec scale;

  // GCC compiles an implicit one without the instruction set of this file.
  HWY_INLINE Int8Columns() {}  // NOLINT(modernize-use-equals-default)
  HWY_INLINE void start(const StoredNumbers& keys, std::size_t group, int lane, int, std::int32_t) {
    at = keys.groups[group] + lane;
    scale = hn::LoadU(kReals, keys.scales[group] + lane);
  }
  HWY_INLINE void start_dims(std::int32_t) {}
  template <int kOdd>
  HWY_INLINE Vec load(std::int32_t d) const {
    return hn::Mul(load_int8(at + std::int64_t{d} * kGroupKeys), scale);
  }
};

struct Int4Columns {
  static constexpr int kMostVectors = 8;

  const std::byte* at = nullptr;
  const float* scales = nullptr;
  Vec scale;

  HWY_INLINE Int4Columns() {}  // NOLINT(modernize-use-equals-default): as above
  HWY_INLINE void start(const StoredNumbers& keys, std::size_t group, int lane, int, std::int32_t) {
    at = keys.groups[group] + lane;
    scales = keys.scales[group] + lane;
  }
  HWY_INLINE void start_dims(std::int32_t d) {
    scale = hn::LoadU(kReals, scales + std::int64_t{d} / kScaleDims * kGroupKeys);
  }
  template <int kOdd>
  HWY_INLINE Vec load(std::int32_t d) const {
    const BitVec pairs = load_pairs(at + std::int64_t{d - kOdd} / 2 * kGroupKeys);
    return hn::Mul(int4_to_reals(kOdd ? hn::ShiftRight<4>(pairs) : pairs), scale);
  }
};
#endif

// Neighbouring columns of the values of one group, from a position on: next() goes to the next one.
// load<v, kCount>() is the v-th vector of kCount that begin at `column`, a multiple of them;
// load_some() is the first of which there are only so many columns: the others are 0.

template <class Numbers>
struct PlainValues {
  const std::byte* at;
  std::int64_t stride;

  HWY_INLINE PlainValues(const StoredNumbers& values, std::size_t group, std::int32_t key,
                         std::int32_t column, std::int32_t)
      : at(values.groups[group] + key * values.row_stride + column * Numbers::kBytes),
        stride(values.row_stride) {}
  HWY_INLINE void next() { at += stride; }
  template <int kVector, int kCount>
  HWY_INLINE Vec load() const {
    return Numbers::load(at + kVector * kLanes * Numbers::kBytes);
  }
  HWY_INLINE Vec load_some(std::int32_t columns) const {
    HWY_ALIGN std::byte numbers[kLanes * Numbers::kBytes] = {};
    std::memcpy(numbers, at, static_cast<std::size_t>(columns) * Numbers::kBytes);
    return Numbers::load(numbers);
  }
};

#if HEED_REAL_BITS == 32
struct Int8Values {
  const std::byte* at;
  std::int64_t stride;
  const float* scale;

  HWY_INLINE Int8Values(const StoredNumbers& values, std::size_t group, std::int32_t key,
                        std::int32_t column, std::int32_t)
      : at(values.groups[group] + key * values.row_stride + column),
        stride(values.row_stride),
        scale(values.scales[group] + key) {}
  HWY_INLINE void next() {
    at += stride;
    ++scale;
  }
  template <int kVector, int kCount>
  HWY_INLINE Vec load() const {
    return hn::Mul(load_int8(at + kVector * kLanes), hn::Set(kReals, *scale));
  }
  HWY_INLINE Vec load_some(std::int32_t columns) const {
    HWY_ALIGN std::byte numbers[kLanes] = {};
    std::memcpy(numbers, at, static_cast<std::size_t>(columns));
    return hn::Mul(load_int8(numbers), hn::Set(kReals, *scale));
  }
};

struct Int4Values {
  const std::byte* at;
  std::int64_t stride;
  const float* scale;
  std::int32_t num_scales;  // of a row
  int shift;                // of the first column in its byte

  HWY_INLINE Int4Values(const StoredNumbers& values, std::size_t group, std::int32_t key,
                        std::int32_t column, std::int32_t dim)
      : stride(values.row_stride), num_scales((dim - 1) / kScaleDims + 1) {
    at = values.groups[group] + key * stride + column / kScaleDims * kPairs + column % kPairs;
    scale = values.scales[group] + key * num_scales + column / kScaleDims;
    shift = column / kPairs % 2 * 4;
  }
  HWY_INLINE void next() {
    at += stride;
    scale += num_scales;
  }
  template <int kVector, int kCount>
  HWY_INLINE Vec load() const {
    constexpr int kFirst = kVector * kLanes;
    if constexpr (kCount * kLanes % kScaleDims == 0) {
      const BitVec pairs = load_pairs(at + kFirst / kScaleDims * kPairs + kFirst % kPairs);
      constexpr bool kIsHigh = kFirst / kPairs % 2 == 1;
      return scaled_int4(kIsHigh ? hn::ShiftRight<4>(pairs) : pairs, scale[kFirst / kScaleDims]);
    } else {
      static_assert(kCount * kLanes <= kPairs);
      return scaled_int4(hn::ShiftRightSame(load_pairs(at + kFirst), shift), *scale);
    }
  }
  // What fills up the last byte is stored as 0.
  HWY_INLINE Vec load_some(std::int32_t) const { return load<0, 1>(); }

 private:
  // Bytes that share a scale.
  static constexpr int kPairs = kScaleDims / 2;
};
#endif

}  // namespace heed::inline v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_STORED_INL_H_
