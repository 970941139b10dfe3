// Products with numbers of eight and four bits, compiled once for each instruction set.
#if defined(HEED_INTEGERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_INTEGERS_INL_H_
#undef HEED_INTEGERS_INL_H_
#else
#define HEED_INTEGERS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>

#include "attention/kernels/integers.h"
#include "attention/kernels/reals-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed::inline v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// As many bytes as a vector of floats has.
using Bytes = hn::Repartition<std::uint8_t, Reals>;
using ByteVec = hn::Vec<Bytes>;

// Numbers without a sign, kLanes quads of them, as instructions multiply them; and the digits that
// they are multiplied by, the same quad in all lanes. kPlanes digits of kDigitBits bits each are a
// factor, the lowest first. In memory a quad of digits is kQuadBytes.
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

  // A quad of digits in all lanes: pairs of those that `even` and `odd` are multiplied by.
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
  // The first and the third of each quad, and the second and the fourth.
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
  // The products of both halves of each lane, added.
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

// Where a quad has its digits: of 16 bits, those that are multiplied together are neighbours.
constexpr int kDigitPlaces[kQuad] = {0, 2, 1, 3};

// Rows whose sums fit the registers, and sums that do.
constexpr bool kHas32Registers = HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON;
constexpr int kMostIntegerRows = 4;
constexpr int kMostSums = kHas32Registers ? 24 : 8;

// Vectors of quads of a group of keys.
constexpr int kGroupVectors = kGroupKeys / kLanes;

HWY_INLINE ByteVec load_bytes(const std::byte* at) {
  return hn::LoadU(Bytes(), reinterpret_cast<const std::uint8_t*>(at));
}
HWY_INLINE ByteVec low_halves(ByteVec bytes) { return hn::And(bytes, hn::Set(Bytes(), 15)); }
HWY_INLINE ByteVec high_halves(ByteVec bytes) {
  const hn::Repartition<std::uint16_t, Reals> words;
  return low_halves(hn::BitCast(Bytes(), hn::ShiftRight<4>(hn::BitCast(words, bytes))));
}

// How numbers with a sign are stored.
template <bool kIsInt4>
constexpr std::int32_t kOffset = kIsInt4 ? 8 : 128;

// What floats are multiplied by to become whole numbers, and what these are multiplied by to be the
// floats again: powers of two, or 0 and NaN where one of the floats is not finite.
struct Unit {
  float inverse;
  float unit;

  // Of floats whose largest magnitude has these bits.
  static HWY_INLINE Unit of(std::int32_t bits) {
    constexpr std::int32_t kFraction = 23;
    constexpr std::int32_t kInfinity = 0xff << kFraction;
    if (bits >= kInfinity) return {0, std::numeric_limits<float>::quiet_NaN()};
    // The largest becomes less than 2²³ − 2¹⁷: its digits have room for a carry.
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
// Writes the digits of kLanes factors, of whole quads, plane by plane, and adds `offset` times each
// to `sums`.
HWY_INLINE void put_digits(Vec numbers, const Unit& unit, std::int32_t offset, Digit* digits,
                           std::int64_t plane_stride, IndexVec (&sums)[kPlanes]) {
  const IndexVec whole = hn::NearestInt(hn::Mul(numbers, hn::Set(kReals, unit.inverse)));
  // Half of a digit's range is added to each of the three, and taken from each without a carry.
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

// A whole number from the sums of its planes.
HWY_INLINE Vec from_planes(const IndexVec (&sums)[kPlanes]) {
  const Vec base = hn::Set(kReals, static_cast<float>(1 << Products::kDigitBits));
  Vec result = hn::ConvertTo(kReals, sums[kPlanes - 1]);
  for (int plane = kPlanes - 2; plane >= 0; --plane) {
    result = hn::MulAdd(result, base, hn::ConvertTo(kReals, sums[plane]));
  }
  return result;
}

// A row of a query: where its parts are.
struct QueryRow {
  std::byte* at;
  std::int32_t head_dim;

  HWY_INLINE float* unit() const { return reinterpret_cast<float*>(at); }
  // What the sums of block b of dimensions begin with.
  HWY_INLINE std::int32_t* starts(std::int32_t b) const {
    return reinterpret_cast<std::int32_t*>(at + 16 + 16 * std::int64_t{b});
  }
  HWY_INLINE Digit* digits() const {
    return reinterpret_cast<Digit*>(at + QueryDigits::start_bytes(head_dim));
  }
  // From one plane of digits to the next.
  HWY_INLINE std::int64_t plane_stride() const {
    return (head_dim + kScaleDims - 1) / kScaleDims * kScaleDims;
  }
};
HWY_INLINE QueryRow row_of(const QueryDigits& query, std::int32_t r) {
  return {query.from(r).rows, query.head_dim};
}

// Some dimensions of a row of a query, filled up with 0.
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
  const std::int32_t offset = storage == KvStorage::kInt4 ? kOffset<true> : kOffset<false>;
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

// use(0), … use(kCount − 1), without a loop: arrays of vectors that these index stay in registers.
template <class Use, int... kNumber>
HWY_INLINE void for_each_of(const Use& use, std::integer_sequence<int, kNumber...>) {
  (use(kNumber), ...);
}
template <int kCount, class Use>
HWY_INLINE void for_each_number(const Use& use) {
  for_each_of(use, std::make_integer_sequence<int, kCount>());
}

// One of some passes over memory, which are about equally long.
struct Pass {
  std::int32_t index = 0;
  std::int32_t count = 1;

  // One of several parts of it.
  HWY_INLINE Pass part(std::int32_t i, std::int32_t parts) const {
    return {index * parts + i, count * parts};
  }
};

// What a pass fetches of a side that will be read, while it is busy with the group of the same
// number: a line in each of so many steps, in their order.
class LinesAhead {
 public:
  HWY_INLINE LinesAhead(const TileSide* side, const Pass& pass, std::int32_t steps)
      : side_(side), fetches_scales_(pass.index == 0) {
    if (side == nullptr) return;
    const std::int64_t bytes = side->group_bytes() / pass.count;
    first_ = bytes * pass.index;
    bytes_of_step_ = bytes / steps;
  }
  // Where there is no such group, steps fetch what is there already.
  HWY_INLINE void begin(std::int32_t group, const std::byte* there) {
    at_ = there;
    step_ = 0;
    if (side_ == nullptr || group >= side_->num_groups()) return;
    const auto g = static_cast<std::size_t>(group);
    at_ = side_->numbers.groups[g] + first_;
    step_ = bytes_of_step_;
    if (fetches_scales_ && side_->has_scales()) fetch_scales(side_->numbers.scales[g]);
  }
  HWY_INLINE void step() {
    __builtin_prefetch(at_, 0, 2);
    at_ += step_;
  }

 private:
  HWY_INLINE void fetch_scales(const float* scales) const {
    const std::int64_t blocks =
        side_->numbers.storage == KvStorage::kInt4 ? side_->row_bytes * 2 / kScaleDims : 1;
    for (std::int64_t b = 0; b < blocks; ++b) {
      __builtin_prefetch(scales + b * kGroupKeys, 0, 2);
    }
  }

  const TileSide* side_;
  bool fetches_scales_;
  std::int64_t first_ = 0;
  std::int64_t bytes_of_step_ = 0;
  const std::byte* at_ = nullptr;
  std::int64_t step_ = 0;
};

template <int kRows, bool kIsInt4>
struct KeyProducts {
  const IntegerSide& in;
  QueryDigits query;
  float* products;  // [kRows][kTileKeys]
  Pass pass;

  // Sums of the two halves of bytes are kept apart, so that one need not wait for the other.
  static constexpr int kHalves = kIsInt4 && kRows <= 2 && kHas32Registers ? 2 : 1;
  using Sums = IndexVec[kRows][kHalves][kPlanes];
  static constexpr std::int32_t kLoadDims = kIsInt4 ? 2 * kQuad : kQuad;

  HWY_INLINE void run() const {
    // Vectors of a group take turns.
    LinesAhead lines(in.ahead, pass, kGroupVectors * ((in.dim - 1) / kLoadDims + 1));
    for (std::int32_t g = in.begin / kGroupKeys; g * kGroupKeys < in.end; ++g) {
      lines.begin(g, in.side.numbers.groups[static_cast<std::size_t>(g)]);
      for (int v = 0; v < kGroupVectors; ++v) multiply(g, v, lines);
    }
  }

 private:
  // The keys of one vector.
  HWY_INLINE void multiply(std::int32_t group, int v, LinesAhead& lines) const {
    const StoredNumbers& keys = in.side.numbers;
    const auto g = static_cast<std::size_t>(group);
    const std::byte* at = keys.groups[g] + v * kLanes * kQuad;
    const float* scales = keys.scales[g] + v * kLanes;
    Vec totals[kRows];
    for (int r = 0; r < kRows; ++r) totals[r] = hn::Zero(kReals);
    constexpr std::int32_t kBlock = kIsInt4 ? kScaleDims : kIntegerDims;
    for (std::int32_t d = 0, b = 0; d < in.dim; d += kBlock, ++b) {
      Sums sums;
      start(b, sums);
      const std::int32_t last = std::min(d + kBlock, in.dim);
      for (std::int32_t first = d; first < last; at += kGroupKeys * kQuad) {
        lines.step();
        first = add(at, first, sums);
      }
      const Vec scale = hn::LoadU(kReals, scales + b * (kIsInt4 ? kGroupKeys : 0));
      for (int r = 0; r < kRows; ++r) {
        const Vec unit = hn::Mul(scale, hn::Set(kReals, *row_of(query, r).unit()));
        totals[r] = hn::MulAdd(sum_of(sums[r]), unit, totals[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      hn::StoreU(totals[r], kReals, products + r * kTileKeys + group * kGroupKeys + v * kLanes);
    }
  }

  HWY_INLINE void start(std::int32_t block, Sums& sums) const {
    for (int r = 0; r < kRows; ++r) {
      const std::int32_t* starts = row_of(query, r).starts(block);
      for (int plane = 0; plane < kPlanes; ++plane) {
        sums[r][0][plane] = hn::Set(Indices(), starts[plane]);
        if (kHalves == 2) sums[r][kHalves - 1][plane] = hn::Zero(Indices());
      }
    }
  }

  // Adds the products of a vector of bytes from dimension d on, and returns the one after them.
  HWY_INLINE std::int32_t add(const std::byte* at, std::int32_t d, Sums& sums) const {
    const ByteVec bytes = load_bytes(at);
    if constexpr (kIsInt4) {
      add_quads(Products(low_halves(bytes)), d, 0, sums);
      add_quads(Products(high_halves(bytes)), d + kQuad, kHalves - 1, sums);
      return d + 2 * kQuad;
    } else {
      add_quads(Products(bytes), d, 0, sums);
      return d + kQuad;
    }
  }
  HWY_INLINE void add_quads(const Products& keys, std::int32_t d, int half, Sums& sums) const {
    for (int r = 0; r < kRows; ++r) {
      const QueryRow row = row_of(query, r);
      const Digit* digits = row.digits() + d;
      for (int plane = 0; plane < kPlanes; ++plane) {
        IndexVec& sum = sums[r][half][plane];
        sum = keys.add_to(sum, Products::Factor(digits + plane * row.plane_stride()));
      }
    }
  }
  static HWY_INLINE Vec sum_of(const IndexVec (&sums)[kHalves][kPlanes]) {
    if constexpr (kHalves == 1) return from_planes(sums[0]);
    IndexVec both[kPlanes];
    for (int plane = 0; plane < kPlanes; ++plane) {
      both[plane] = hn::Add(sums[0][plane], sums[kHalves - 1][plane]);
    }
    return from_planes(both);
  }
};

// The digits of the weights of a row, times the scales that values have.
struct WeightDigits {
  HWY_ALIGN float weights[kTileKeys];  // those that count, and 0
  float unit;
  std::int32_t starts[kPlanes];
  HWY_ALIGN Digit digits[kPlanes][kTileKeys];

  // Of block b of columns, for keys from begin to end.
  template <bool kIsInt4>
  HWY_INLINE void take(const IntegerSide& in, const float* all_weights, std::int32_t b) {
    HWY_ALIGN float numbers[kTileKeys];
    IndexVec largest = hn::Zero(Indices());
    const std::int32_t first = in.begin / kLanes * kLanes;
    for (std::int32_t key = first; key < in.end; key += kLanes) {
      const float* scales = in.side.numbers.scales[static_cast<std::size_t>(key / kGroupKeys)] +
                            b * kGroupKeys + key % kGroupKeys;
      const Vec weight = hn::LoadU(kReals, all_weights + key);
      // NaN is kept; scales of positions that do not exist may be anything.
      const auto is_nothing = hn::Le(weight, hn::Zero(kReals));
      hn::Store(hn::IfThenZeroElse(is_nothing, weight), kReals, weights + key);
      const Vec number = hn::IfThenZeroElse(is_nothing, hn::Mul(weight, hn::LoadU(kReals, scales)));
      largest = hn::Max(largest, magnitude_bits(number));
      hn::Store(number, kReals, numbers + key);
    }
    const Unit found = Unit::of(hn::GetLane(hn::MaxOfLanes(Indices(), largest)));
    unit = found.unit;
    IndexVec sums[kPlanes];
    clear(sums);
    for (std::int32_t key = first; key < in.end; key += kLanes) {
      put_digits(hn::Load(kReals, numbers + key), found, kOffset<kIsInt4>, digits[0] + key,
                 kTileKeys, sums);
    }
    for (int plane = 0; plane < kPlanes; ++plane) {
      starts[plane] = -hn::GetLane(hn::SumOfLanes(Indices(), sums[plane]));
    }
  }
};

// Values of some rows. A vector of bytes has those of kLanes columns; of int4 its high halves are
// those 16 columns farther.
template <int kRows, bool kIsInt4>
struct ValueProducts {
  const IntegerSide& in;
  const float* weights;  // [kRows][kTileKeys]
  WeightedSums sums_at;
  Pass pass;

  static constexpr int kHalves = kIsInt4 ? 2 : 1;
  // Vectors of bytes whose sums fit the registers.
  static constexpr int kLoads = std::clamp(kMostSums / (kRows * kPlanes * kHalves), 1, 8);

  HWY_INLINE void run() const {
    WeightDigits digits[kRows];
    // Columns of a block, which share the digits of a weight, and vectors of bytes that it has.
    const std::int32_t columns = kIsInt4 ? kScaleDims : (in.dim + kLanes - 1) / kLanes * kLanes;
    const std::int32_t loads = columns / kLanes / kHalves;
    const std::int32_t passes = (loads - 1) / kLoads + 1;
    const std::int32_t blocks = (in.dim - 1) / columns + 1;
    for (std::int32_t b = 0; b < blocks; ++b) {
      for (int r = 0; r < kRows; ++r) {
        digits[r].template take<kIsInt4>(in, weights + r * kTileKeys, b);
      }
      for (std::int32_t i = 0; i < passes; ++i) {
        const Columns part{b * columns, loads * i / passes,
                           pass.part(b * passes + i, blocks * passes)};
        add_some<kLoads>(digits, part, loads * (i + 1) / passes - part.load);
      }
    }
  }

 private:
  template <int kCount>
  using Sums = IndexVec[kRows][kCount][kHalves][kPlanes];

  // Vectors of bytes from one on, of the block that begins with column `first`.
  struct Columns {
    std::int32_t first;
    std::int32_t load;
    Pass pass;
  };

  template <int kMost>
  HWY_INLINE void add_some(const WeightDigits (&digits)[kRows], const Columns& columns,
                           std::int32_t count) const {
    if (count == kMost) return add<kMost>(digits, columns);
    if constexpr (kMost > 1) add_some<kMost - 1>(digits, columns, count);
  }

  // Beside the first part, weights are added up: a chain of additions that nothing else waits for.
  template <int kCount>
  HWY_INLINE void add(const WeightDigits (&digits)[kRows], const Columns& columns) const {
    const bool adds_weights = columns.first == 0 && columns.load == 0;
    float weight_sums[kRows] = {};
    Sums<kCount> sums;
    for_each_sum<kCount>([&](int r, int i, int half) HWY_ATTR {
      for (int plane = 0; plane < kPlanes; ++plane) {
        sums[r][i][half][plane] = hn::Set(Indices(), digits[r].starts[plane]);
      }
    });
    const StoredNumbers& values = in.side.numbers;
    const std::int64_t offset =
        std::int64_t{columns.first / kHalves + columns.load * kLanes} * kQuad;
    const std::int64_t next = values.row_stride * kQuad;
    LinesAhead lines(in.ahead, columns.pass, kGroupKeys / kQuad * kCount);
    for (std::int32_t g = in.begin / kGroupKeys; g * kGroupKeys < in.end; ++g) {
      const std::int32_t from = std::max(in.begin - g * kGroupKeys, 0) / kQuad;
      const std::int32_t to = (std::min(in.end - g * kGroupKeys, kGroupKeys) + kQuad - 1) / kQuad;
      const std::byte* at = values.groups[static_cast<std::size_t>(g)] + offset + from * next;
      lines.begin(g, at);
      for (std::int32_t q = from; q < to; ++q, at += next) {
        const std::int32_t key = g * kGroupKeys + q * kQuad;
        if (adds_weights) add_weights(digits, key, weight_sums);
        for_each_number<kCount>([&](int i) HWY_ATTR {
          lines.step();
          add_bytes<kCount>(load_bytes(at + i * kLanes * kQuad), digits, key, i, sums);
        });
      }
    }
    for_each_sum<kCount>([&](int r, int i, int half) HWY_ATTR {
      float* const to = sums_at.out + r * sums_at.stride + columns.first +
                        (columns.load + i) * kLanes + half * kScaleDims / 2;
      const Vec sum = from_planes(sums[r][i][half]);
      hn::StoreU(hn::MulAdd(sum, hn::Set(kReals, digits[r].unit), hn::LoadU(kReals, to)), kReals,
                 to);
    });
    if (!adds_weights) return;
    for (int r = 0; r < kRows; ++r) sums_at.weights[r] += weight_sums[r];
  }

  static HWY_INLINE void add_weights(const WeightDigits (&digits)[kRows], std::int32_t key,
                                     float (&sums)[kRows]) {
    for (int j = 0; j < kQuad; ++j) {
      for (int r = 0; r < kRows; ++r) sums[r] += digits[r].weights[key + j];
    }
  }

  // use(row, vector of bytes, half)
  template <int kCount, class Use>
  static HWY_INLINE void for_each_sum(const Use& use) {
    for (int r = 0; r < kRows; ++r) {
      for_each_number<kCount>([&](int i) HWY_ATTR {
        for (int half = 0; half < kHalves; ++half) use(r, i, half);
      });
    }
  }

  template <int kCount>
  static HWY_INLINE void add_bytes(ByteVec bytes, const WeightDigits (&digits)[kRows],
                                   std::int32_t key, int i, Sums<kCount>& sums) {
    const Products low(kIsInt4 ? low_halves(bytes) : bytes);
    const Products high(kIsInt4 ? high_halves(bytes) : bytes);
    for (int r = 0; r < kRows; ++r) {
      for (int plane = 0; plane < kPlanes; ++plane) {
        const Products::Factor factor(digits[r].digits[plane] + key);
        sums[r][i][0][plane] = low.add_to(sums[r][i][0][plane], factor);
        if constexpr (kIsInt4) {
          sums[r][i][1][plane] = high.add_to(sums[r][i][1][plane], factor);
        }
      }
    }
  }
};

// Calls use.run<kRows>(first, pass) for parts of the rows of about equal size.
template <int kRows, class Use>
HWY_INLINE void with_rows(std::int32_t rows, std::int32_t first, const Pass& pass, const Use& use) {
  if (rows == kRows) return use.template run<kRows>(first, pass);
  if constexpr (kRows > 1) with_rows<kRows - 1>(rows, first, pass, use);
}
template <int kMost, class Use>
HWY_INLINE void in_parts(std::int32_t rows, const Use& use) {
  const std::int32_t parts = (rows - 1) / kMost + 1;
  for (std::int32_t part = 0; part < parts; ++part) {
    const std::int32_t first = rows * part / parts;
    with_rows<kMost>(rows * (part + 1) / parts - first, first, {part, parts}, use);
  }
}

template <bool kIsInt4>
struct MultiplyKeys {
  const IntegerSide& keys;
  const QueryDigits& query;
  float* products;

  template <int kRows>
  HWY_INLINE void run(std::int32_t first, const Pass& pass) const {
    KeyProducts<kRows, kIsInt4>{keys, query.from(first), products + std::int64_t{first} * kTileKeys,
                                pass}
        .run();
  }
};

template <bool kIsInt4>
struct AddValues {
  const IntegerSide& values;
  const float* weights;
  const WeightedSums& sums;

  template <int kRows>
  HWY_INLINE void run(std::int32_t first, const Pass& pass) const {
    ValueProducts<kRows, kIsInt4>{
        values,
        weights + std::int64_t{first} * kTileKeys,
        {sums.weights + first, sums.out + first * sums.stride, sums.stride},
        pass}
        .run();
  }
};

void multiply_keys(const IntegerSide& keys, const QueryDigits& query, std::int32_t rows,
                   float* products) {
  if (keys.side.numbers.storage == KvStorage::kInt4) {
    in_parts<kMostIntegerRows>(rows, MultiplyKeys<true>{keys, query, products});
  } else {
    in_parts<kMostIntegerRows>(rows, MultiplyKeys<false>{keys, query, products});
  }
}

void add_values(const IntegerSide& values, const float* weights, std::int32_t rows,
                const WeightedSums& sums) {
  // Both halves of bytes have sums.
  constexpr int kMostRowsOfHalves = kMostIntegerRows / 2;
  if (values.side.numbers.storage == KvStorage::kInt4) {
    in_parts<kMostRowsOfHalves>(rows, AddValues<true>{values, weights, sums});
  } else {
    in_parts<kMostIntegerRows>(rows, AddValues<false>{values, weights, sums});
  }
}

const IntegerTable* integer_table() {
  static const IntegerTable table{take_query, multiply_keys, add_values};
  return &table;
}

}  // namespace heed::inline v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_INTEGERS_INL_H_
