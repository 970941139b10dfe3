// The numbers of a stored tile as vectors: of keys in columns, with a dimension of several keys in
// the lanes, and of values, with columns in the lanes. For quantised numbers see integers.h.
#if defined(HEED_STORED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_STORED_INL_H_
#undef HEED_STORED_INL_H_
#else
#define HEED_STORED_INL_H_
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "attention/kernels/decode/prefetch.h"
#include "attention/kernels/decode/stored_tile.h"
#include "attention/kernels/types-inl.h"
#include "hwy/highway.h"
#include "simd/product-inl.h"
#if HEED_REAL_BITS == 32
#include "simd/half-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// Numbers without scales: load() reads kLanes of them from any address.

struct RealNumbers {
  using Element = Real;
  static constexpr int kBytes = sizeof(Element);
  static HWY_INLINE Vec load(const std::byte* at) {
    return hn::LoadU(kReals, reinterpret_cast<const Real*>(at));
  }
};

// Loads in two halves. Where memory is read in order, a processor's own prefetching stays further
// ahead of a loop with smaller loads.
struct RealNumbersInHalves {
  using Element = Real;
  static constexpr int kBytes = sizeof(Element);
  static HWY_INLINE Vec load(const std::byte* at) {
    const hn::Half<Reals> half;
    const auto* const numbers = reinterpret_cast<const Real*>(at);
    return hn::Combine(kReals, hn::LoadU(half, numbers + kLanes / 2), hn::LoadU(half, numbers));
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
#endif

// A vector of keys in columns: the dimensions of kLanes neighbouring keys of one group, from `lane`
// on. start_dims(d) must be called before the kDims dimensions from d on are loaded, the first of
// which is load(0).

// The kDims of a type that loads any dimension.
constexpr std::int32_t kAllDims = std::numeric_limits<std::int32_t>::max() / 2;

template <class Numbers>
struct PlainColumns {
  static constexpr int kMostVectors = 8;
  static constexpr std::int32_t kDims = kAllDims;

  const std::byte* at;
  const std::byte* dims;

  HWY_INLINE void start(const StoredNumbers& keys, std::size_t group, int lane, int, std::int32_t) {
    at = keys.groups[group] + lane * Numbers::kBytes;
  }
  HWY_INLINE void start_dims(std::int32_t d) { dims = at + std::int64_t{d} * kColumn; }
  HWY_INLINE Vec load(std::int32_t d) const { return Numbers::load(dims + d * kColumn); }

 private:
  static constexpr int kColumn = kGroupKeys * Numbers::kBytes;
};

// Neighbouring columns of the values of one group, from a position on, which next() moves by one.
// load<v>() is vector v, counted from `column`; load_some(columns) is the first vector if it has
// fewer columns, with 0 for the others.

template <class Numbers>
struct PlainValues {
  const std::byte* at;
  std::int64_t stride;

  HWY_INLINE PlainValues(const StoredNumbers& values, std::size_t group, std::int32_t key,
                         std::int32_t column)
      : at(values.groups[group] + key * values.row_stride + column * Numbers::kBytes),
        stride(values.row_stride) {}
  HWY_INLINE void next() { at += stride; }
  template <int kCount>
  HWY_INLINE void fetch_ahead() const {
    kernels::fetch_ahead(at, kCount * kLanes * Numbers::kBytes);
  }
  template <int kVector>
  HWY_INLINE Vec load() const {
    return Numbers::load(at + kVector * kLanes * Numbers::kBytes);
  }
  HWY_INLINE Vec load_some(std::int32_t columns) const {
    HWY_ALIGN std::byte numbers[kLanes * Numbers::kBytes] = {};
    std::memcpy(numbers, at, static_cast<std::size_t>(columns) * Numbers::kBytes);
    return Numbers::load(numbers);
  }
};

#if HEED_HAS_PAIRS
// Keys in columns, in pairs of two neighbouring dimensions, of which there is an even number.
struct PairColumns {
  static constexpr int kMostVectors = 8;
  static constexpr std::int32_t kDims = kInTiles ? kKeysTogether / 2 : kAllDims;

  const std::byte* at;
  const std::byte* dims;

  HWY_INLINE void start(const StoredNumbers& keys, std::size_t group, int lane, int, std::int32_t) {
    at = keys.groups[group] + lane * kBytes;
  }
  HWY_INLINE void start_dims(std::int32_t pair) { dims = at + std::int64_t{pair} * (2 * kColumn); }
  HWY_INLINE Vec load(std::int32_t pair) const {
    const std::byte* const lower = dims + pair * (2 * kColumn);
    return pair_of_rows(lower + kColumn, lower);
  }

 private:
  static constexpr int kBytes = 2;
  static constexpr int kColumn = kBytes * kGroupKeys;
};

// Columns of two neighbouring values of one group in pairs, with the functions of PlainValues.
struct PairValues {
  const std::byte* at;
  std::int64_t stride;
  std::int32_t count = 0;  // the number of values from here on

  HWY_INLINE PairValues(const StoredNumbers& values, std::size_t group, std::int32_t key,
                        std::int32_t column)
      : at(values.groups[group] + key * values.row_stride + column * kBytes),
        stride(values.row_stride) {}
  HWY_INLINE void next() {
    at += 2 * stride;
    count -= 2;
  }
  template <int kVector>
  HWY_INLINE Vec load() const {
    return pair_of_rows(at + kVector * kLanes * kBytes, second() + kVector * kLanes * kBytes);
  }
  HWY_INLINE Vec load_some(std::int32_t columns) const {
    HWY_ALIGN std::byte rows[2][kLanes * kBytes] = {};
    std::memcpy(rows[0], at, static_cast<std::size_t>(columns) * kBytes);
    std::memcpy(rows[1], second(), static_cast<std::size_t>(columns) * kBytes);
    return pair_of_rows(rows[0], rows[1]);
  }

 private:
  static constexpr int kBytes = 2;
  // If the number of values is odd, the last one is read in place of the next, which has weight 0.
  HWY_INLINE const std::byte* second() const { return count > 1 ? at + stride : at; }
};
#endif

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_STORED_INL_H_
