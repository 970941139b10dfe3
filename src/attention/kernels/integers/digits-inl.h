// The factors of quantised numbers as integers, divided into digits of the size that an instruction
// set multiplies.
#if defined(HEED_DIGITS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_DIGITS_INL_H_
#undef HEED_DIGITS_INL_H_
#else
#define HEED_DIGITS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "attention/kernels/integers/integers.h"
#include "attention/kernels/types-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// A vector of bytes of the size of a vector of floats.
using Bytes = hn::Repartition<std::uint8_t, Reals>;
using ByteVec = hn::Vec<Bytes>;

// kLanes quads of unsigned bytes in the form that instructions multiply, and Factor, the digits
// that they are multiplied by, one quad in all lanes. A factor consists of kPlanes digits of
// kDigitBits bits, the lowest first.
#ifdef HEED_OF_QUADS

struct Products {
  static constexpr int kPlanes = 3;
  static constexpr int kDigitBits = 8;
  using Digit = std::int8_t;

  // A quad of digits in all lanes.
  struct Factor {
    __m512i quads;

    explicit HWY_INLINE Factor(const Digit* quad) {
      std::int32_t digits;
      std::memcpy(&digits, quad, sizeof(digits));
      quads = _mm512_set1_epi32(digits);
    }
  };
  __m512i quads;

  explicit HWY_INLINE Products(ByteVec bytes) : quads(bytes.raw) {}
  HWY_INLINE IndexVec add_to(IndexVec sum, const Factor& factor) const {
    return IndexVec{_mm512_dpbusd_epi32(sum.raw, quads, factor.quads)};
  }
};

#else

struct Products {
  static constexpr int kPlanes = 2;
  static constexpr int kDigitBits = 12;
  using Digit = std::int16_t;

  using Words = hn::Repartition<std::int16_t, Reals>;
  using WordVec = hn::Vec<Words>;

  // A quad of digits in all lanes: one pair for `even` and one for `odd`.
  struct Factor {
    IndexVec even;
    IndexVec odd;

    explicit HWY_INLINE Factor(const Digit* quad) {
      std::int32_t digits[2];
      std::memcpy(digits, quad, sizeof(digits));
      even = hn::Set(Indices(), digits[0]);
      odd = hn::Set(Indices(), digits[1]);
    }
  };
  // Bytes 0 and 2 of each quad, and bytes 1 and 3.
  WordVec even;
  WordVec odd;

  explicit HWY_INLINE Products(ByteVec bytes)
      : even(hn::BitCast(Words(), hn::And(hn::BitCast(kBits, bytes), hn::Set(kBits, 0x00ff00ff)))),
        odd(hn::BitCast(Words(), hn::ShiftRight<8>(hn::BitCast(
                                     hn::Repartition<std::uint16_t, Reals>(), bytes)))) {}
  HWY_INLINE IndexVec add_to(IndexVec sum, const Factor& factor) const {
    return hn::Add(hn::Add(sum, sums_of_pairs(even, factor.even)), sums_of_pairs(odd, factor.odd));
  }

 private:
  // The sums of the products of both halves of each lane.
  static HWY_INLINE IndexVec sums_of_pairs(WordVec a, IndexVec b) {
#if HWY_TARGET <= HWY_AVX3
    return IndexVec{_mm512_madd_epi16(a.raw, b.raw)};
#elif HWY_TARGET == HWY_AVX2
    return IndexVec{_mm256_madd_epi16(a.raw, b.raw)};
#elif HWY_ARCH_X86
    return IndexVec{_mm_madd_epi16(a.raw, b.raw)};
#else
    const WordVec words = hn::BitCast(Words(), b);
    return IndexVec(vpaddq_s32(vmull_s16(vget_low_s16(a.raw), vget_low_s16(words.raw)),
                               vmull_high_s16(a.raw, words.raw)));
#endif
  }
};

#endif

using Digit = Products::Digit;
constexpr int kPlanes = Products::kPlanes;

// The places of the digits of a quad: 16-bit digits that are multiplied together are neighbours.
constexpr int kDigitPlaces[kQuad] = {0, 2, 1, 3};

// The factor that turns floats into integers, and the one that turns these into the floats again:
// powers of two, or 0 and NaN if one of the floats is not finite.
struct Unit {
  float inverse;
  float unit;

  // The unit of floats whose largest magnitude has these bits.
  static HWY_INLINE Unit of(std::int32_t bits) {
    constexpr std::int32_t kFraction = 23;
    constexpr std::int32_t kInfinity = 0xff << kFraction;
    if (bits >= kInfinity) return {0, std::numeric_limits<float>::quiet_NaN()};
    // The largest integer is less than 2²³ − 2¹⁷, so that its digits have room for a carry.
    const std::int32_t exponent = std::max((bits + (1 << (kFraction - 6))) >> kFraction, kFraction);
    return {power(276 - exponent), power(exponent - 22)};
  }

 private:
  // 2^(biased − 127)
  static HWY_INLINE float power(std::int32_t biased) {
    const std::int32_t bits = biased << 23;
    float result;
    std::memcpy(&result, &bits, sizeof(result));
    return result;
  }
};

HWY_INLINE IndexVec magnitude_bits(Vec numbers) {
  return hn::And(hn::BitCast(Indices(), numbers), hn::Set(Indices(), 0x7fffffff));
}

#ifdef HEED_OF_QUADS
// Writes the digits of kLanes factors, in whole quads, plane by plane, and adds `offset` times each
// digit to `sums`.
HWY_INLINE void put_digits(Vec numbers, const Unit& unit, std::int32_t offset, Digit* digits,
                           std::int64_t plane_stride, IndexVec (&sums)[kPlanes]) {
  const IndexVec whole = hn::NearestInt(hn::Mul(numbers, hn::Set(kReals, unit.inverse)));
  // Adds half of a digit's range to each of the three digits, and subtracts it again without carry.
  const IndexVec halves = hn::Set(Indices(), 0x808080);
  const IndexVec all = hn::Xor(hn::Add(whole, halves), halves);
  for (int plane = 0; plane < kPlanes; ++plane) {
    const IndexVec in_plane = hn::Set(Indices(), offset << (Products::kDigitBits * plane));
    sums[plane] = IndexVec{_mm512_dpbusd_epi32(sums[plane].raw, in_plane.raw, all.raw)};
    const __m512i lowest =
        _mm512_srli_epi32(all.raw, static_cast<unsigned>(Products::kDigitBits * plane));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(digits + plane * plane_stride),
                     _mm512_cvtepi32_epi8(lowest));
  }
}
#else
HWY_INLINE void put_digits(Vec numbers, const Unit& unit, std::int32_t offset, Digit* digits,
                           std::int64_t plane_stride, IndexVec (&sums)[kPlanes]) {
  constexpr int kRest = 32 - Products::kDigitBits;
  const IndexVec whole = hn::NearestInt(hn::Mul(numbers, hn::Set(kReals, unit.inverse)));
  const IndexVec low = hn::ShiftRight<kRest>(hn::ShiftLeft<kRest>(whole));
  const IndexVec planes[] = {low, hn::ShiftRight<Products::kDigitBits>(hn::Sub(whole, low))};
  for (int plane = 0; plane < kPlanes; ++plane) {
    sums[plane] = hn::Add(sums[plane], hn::Mul(planes[plane], hn::Set(Indices(), offset)));
    HWY_ALIGN std::int32_t lanes[kLanes];
    hn::Store(planes[plane], Indices(), lanes);
    Digit* to = digits + plane * plane_stride;
    for (int i = 0; i < kLanes; ++i) {
      to[i / kQuad * kQuad + kDigitPlaces[i % kQuad]] = static_cast<Digit>(lanes[i]);
    }
  }
}
#endif

HWY_INLINE void clear(IndexVec (&sums)[kPlanes]) {
  for (IndexVec& sum : sums) sum = hn::Zero(Indices());
}

// The integers of the sums of their planes, as floats.
HWY_INLINE Vec from_planes(const IndexVec (&sums)[kPlanes]) {
  const Vec base = hn::Set(kReals, static_cast<float>(1 << Products::kDigitBits));
  Vec result = hn::ConvertTo(kReals, sums[kPlanes - 1]);
  for (int plane = kPlanes - 2; plane >= 0; --plane) {
    result = hn::MulAdd(result, base, hn::ConvertTo(kReals, sums[plane]));
  }
  return result;
}

// The parts of a row of a query.
struct QueryRow {
  std::byte* at;
  std::int32_t head_dim;

  HWY_INLINE float* unit() const { return reinterpret_cast<float*>(at); }
  // The initial values of the sums of block b of dimensions.
  HWY_INLINE std::int32_t* starts(std::int32_t b) const {
    return reinterpret_cast<std::int32_t*>(at + 16 + 16 * std::int64_t{b});
  }
  HWY_INLINE Digit* digits() const {
    return reinterpret_cast<Digit*>(at + QueryDigits::start_bytes(head_dim));
  }
  // The distance between planes of digits.
  HWY_INLINE std::int64_t plane_stride() const {
    return (head_dim + kScaleDims - 1) / kScaleDims * kScaleDims;
  }
};
HWY_INLINE QueryRow row_of(const QueryDigits& query, std::int32_t r) {
  return {query.from(r).rows, query.head_dim};
}

// The number of dimensions of a query that gather() reads at once, with 0 for those that do not
// exist.
constexpr std::int32_t kQueryDims = kScaleDims;
HWY_INLINE void gather(const float* query, std::int32_t width, std::int32_t count,
                       float (&numbers)[kQueryDims]) {
  for (std::int32_t d = 0; d < count; ++d) numbers[d] = query[std::int64_t{d} * width];
  std::fill(numbers + count, numbers + kQueryDims, 0.0F);
}

inline void take_row(KvStorage storage, const float* query, std::int32_t width,
                     const QueryRow& row) {
  HWY_ALIGN float numbers[kQueryDims];
  const auto count_at = [&](std::int32_t d) { return std::min(kQueryDims, row.head_dim - d); };
  std::int32_t largest = 0;
  for (std::int32_t d = 0; d < row.head_dim; ++d) {
    std::int32_t bits;
    std::memcpy(&bits, query + std::int64_t{d} * width, sizeof(bits));
    largest = std::max(largest, bits & 0x7fffffff);
  }
  const Unit unit = Unit::of(largest);
  *row.unit() = unit.unit;
  const std::int32_t offset = traits_of(storage).offset;
  const std::int32_t block_dims = integer_dims(storage);
  IndexVec sums[kPlanes];
  for (std::int32_t d = 0; d < row.head_dim; d += kQueryDims) {
    if (d % block_dims == 0) clear(sums);
    gather(query + std::int64_t{d} * width, width, count_at(d), numbers);
    for (std::int32_t i = 0; i < kQueryDims; i += kLanes) {
      put_digits(hn::Load(kReals, numbers + i), unit, offset, row.digits() + d + i,
                 row.plane_stride(), sums);
    }
    std::int32_t* const starts = row.starts(d / block_dims);
    for (int plane = 0; plane < kPlanes; ++plane) {
      starts[plane] = -hn::GetLane(hn::SumOfLanes(Indices(), sums[plane]));
    }
  }
}

void take_query(KvStorage storage, const float* query, std::int32_t width, std::int32_t num_rows,
                const QueryDigits& digits) {
  for (std::int32_t r = 0; r < num_rows; ++r) {
    take_row(storage, query + r, width, row_of(digits, r));
  }
}

// The digits of the weights of a row, multiplied by the scales of values.
struct WeightDigits {
  float unit;
  std::int32_t starts[kPlanes];
  HWY_ALIGN Digit digits[kPlanes][kTileKeys];

  // Makes the digits for block b of columns and the keys from in.begin to in.end. Weights ≤ 0
  // become 0.
  HWY_INLINE void take(const IntegerSide& in, float* weights, std::int32_t b) {
    const std::int32_t first = in.begin / kLanes * kLanes;
    const auto number_at = [&](std::int32_t key) HWY_ATTR {
      const float* scales = in.side.numbers.scales[static_cast<std::size_t>(key / kGroupKeys)] +
                            b * kGroupKeys + key % kGroupKeys;
      const Vec weight = hn::LoadU(kReals, weights + key);
      // Keeps NaN. Scales of positions that do not exist may be anything, as their weights are 0.
      return hn::IfThenZeroElse(hn::Le(weight, hn::Zero(kReals)),
                                hn::Mul(weight, hn::LoadU(kReals, scales)));
    };
    IndexVec largest = hn::Zero(Indices());
    for (std::int32_t key = first; key < in.end; key += kLanes) {
      largest = hn::Max(largest, magnitude_bits(number_at(key)));
      const Vec weight = hn::LoadU(kReals, weights + key);
      hn::StoreU(hn::IfThenZeroElse(hn::Le(weight, hn::Zero(kReals)), weight), kReals,
                 weights + key);
    }
    const Unit found = Unit::of(hn::GetLane(hn::MaxOfLanes(Indices(), largest)));
    unit = found.unit;
    const std::int32_t offset = traits_of(in.side.numbers.storage).offset;
    IndexVec sums[kPlanes];
    clear(sums);
    for (std::int32_t key = first; key < in.end; key += kLanes) {
      put_digits(number_at(key), found, offset, digits[0] + key, kTileKeys, sums);
    }
    for (int plane = 0; plane < kPlanes; ++plane) {
      starts[plane] = -hn::GetLane(hn::SumOfLanes(Indices(), sums[plane]));
    }
  }
};

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_DIGITS_INL_H_
