// Products with 8-bit and 4-bit numbers, compiled once for each instruction set.
#if defined(HEED_INTEGERS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_INTEGERS_INL_H_
#undef HEED_INTEGERS_INL_H_
#else
#define HEED_INTEGERS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "attention/kernels/integers/digits-inl.h"
#include "attention/kernels/integers/integers.h"
#include "attention/kernels/types-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// The largest numbers of rows and of sums that fit the registers.
constexpr bool kHas32Registers = HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HEED_NEON;
constexpr int kMostIntegerRows = 4;
constexpr int kMostSums = kHas32Registers ? 24 : 8;

// The number of vectors of quads of a group of keys.
constexpr int kGroupVectors = kGroupKeys / kLanes;

HWY_INLINE ByteVec load_bytes(const std::byte* at) {
  return hn::LoadU(Bytes(), reinterpret_cast<const std::uint8_t*>(at));
}
HWY_INLINE ByteVec low_halves(ByteVec bytes) { return hn::And(bytes, hn::Set(Bytes(), 15)); }
HWY_INLINE ByteVec high_halves(ByteVec bytes) {
  const hn::Repartition<std::uint16_t, Reals> words;
  return low_halves(hn::BitCast(Bytes(), hn::ShiftRight<4>(hn::BitCast(words, bytes))));
}

// Calls use(0), … use(kCount − 1) without a loop, so that arrays of vectors with these indices stay
// in registers.
template <class Use, int... kNumber>
HWY_INLINE void for_each_of(const Use& use, std::integer_sequence<int, kNumber...>) {
  (use(kNumber), ...);
}
template <int kCount, class Use>
HWY_INLINE void for_each_number(const Use& use) {
  for_each_of(use, std::make_integer_sequence<int, kCount>());
}

// One of several passes over memory, which are of about equal length.
struct Pass {
  std::int32_t index = 0;
  std::int32_t count = 1;

  // One of several equal parts of this pass.
  HWY_INLINE Pass part(std::int32_t i, std::int32_t parts) const {
    return {index * parts + i, count * parts};
  }
};

// The lines that a pass fetches while it computes a group, one in each of `steps` steps and in
// order: of the group with the same number of the side that is read next, or, where one pass reads
// all of a contiguous side, the lines kStretchAhead further on.
class LinesAhead {
 public:
  HWY_INLINE LinesAhead(const IntegerSide& in, const Pass& pass, std::int32_t steps)
      : in_(in), fetches_scales_(pass.index == 0) {
    if (in.ahead == nullptr) return;
    const std::int64_t bytes = in.ahead->group_bytes() / pass.count;
    first_ = bytes * pass.index;
    bytes_of_step_ = bytes / steps;
  }
  // Where nothing is to be fetched, step() fetches a line that is there already.
  HWY_INLINE void begin(std::int32_t group, const std::byte* there) {
    start_ = there;
    offset_ = 0;
    step_ = 0;
    if (in_.ahead == nullptr) {
      if (!in_.fetches_stretch) return;
      offset_ = kStretchAhead;
      step_ = kLineBytes;
      return;
    }
    if (group >= in_.ahead->num_groups()) return;
    start_ = in_.ahead->numbers.groups[static_cast<std::size_t>(group)];
    offset_ = first_;
    step_ = bytes_of_step_;
    if (fetches_scales_ && in_.ahead->has_scales()) in_.ahead->fetch_scales<2>(group);
  }
  HWY_INLINE void step() {
    fetch_line(start_, offset_);
    offset_ += step_;
  }

 private:
  const IntegerSide& in_;
  bool fetches_scales_;
  std::int64_t first_ = 0;
  std::int64_t bytes_of_step_ = 0;
  const std::byte* start_ = nullptr;
  std::int64_t offset_ = 0;
  std::int64_t step_ = 0;
};

template <int kRows, bool kIsInt4>
struct KeyProducts {
  const IntegerSide& in;
  QueryDigits query;
  float* products;  // [kRows][kTileKeys]
  Pass pass;

  // The two halves of bytes have sums of their own, so that one need not wait for the other.
  static constexpr int kHalves = kIsInt4 && kRows <= 2 && kHas32Registers ? 2 : 1;
  using Sums = IndexVec[kRows][kHalves][kPlanes];
  static constexpr std::int32_t kLoadDims = kIsInt4 ? 2 * kQuad : kQuad;

  HWY_INLINE void run() const {
    if (in.ahead == nullptr) fetch_scales();
    // Goes over the vectors of a group in turn.
    LinesAhead lines(in, pass, kGroupVectors * ((in.dim - 1) / kLoadDims + 1));
    for (std::int32_t g = in.begin / kGroupKeys; g * kGroupKeys < in.end; ++g) {
      lines.begin(g, in.side.numbers.groups[static_cast<std::size_t>(g)]);
      for (int v = 0; v < kGroupVectors; ++v) multiply(g, v, lines);
    }
  }

 private:
  // Where keys are read in order, all scales are fetched first. They are stored before the keys,
  // and reading those of each group in turn would interrupt the stream that the processor predicts.
  HWY_INLINE void fetch_scales() const {
    for (std::int32_t g = in.begin / kGroupKeys; g * kGroupKeys < in.end; ++g) {
      in.side.fetch_scales<1>(g);
    }
  }

  // Multiplies the keys of one vector.
  HWY_INLINE void multiply(std::int32_t group, int v, LinesAhead& lines) const {
    const StoredNumbers& keys = in.side.numbers;
    const auto g = static_cast<std::size_t>(group);
    const std::byte* at = keys.groups[g] + v * kLanes * kQuad;
    const float* scales = keys.scales[g] + v * kLanes;
    Vec totals[kRows];
    for (int r = 0; r < kRows; ++r) totals[r] = hn::Zero(kReals);
    constexpr std::int32_t kBlock = integer_dims(kIsInt4 ? KvStorage::kInt4 : KvStorage::kInt8);
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

  // Adds the products of a vector of bytes from dimension d on, and returns the dimension after
  // them.
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

// The products with values of some rows. A vector of bytes has kLanes columns; with int4 its high
// halves are the columns 16 further on.
template <int kRows, bool kIsInt4>
struct ValueProducts {
  const IntegerSide& in;
  float* weights;  // [kRows][kTileKeys]
  WeightedSums sums_at;
  Pass pass;

  static constexpr int kHalves = kIsInt4 ? 2 : 1;
  // The number of vectors of bytes whose sums fit the registers.
  static constexpr int kLoads = std::clamp(kMostSums / (kRows * kPlanes * kHalves), 1, 8);

  HWY_INLINE void run() const {
    WeightDigits digits[kRows];
    // The columns of a block, which share the digits of a weight, and its number of vectors of
    // bytes.
    const std::int32_t columns = kIsInt4 ? kScaleDims : (in.dim + kLanes - 1) / kLanes * kLanes;
    const std::int32_t loads = columns / kLanes / kHalves;
    const std::int32_t passes = (loads - 1) / kLoads + 1;
    const std::int32_t blocks = (in.dim - 1) / columns + 1;
    for (std::int32_t b = 0; b < blocks; ++b) {
      for (int r = 0; r < kRows; ++r) {
        digits[r].take(in, weights + r * kTileKeys, b);
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

  // Vectors of bytes from number `load` on, of the block that begins with column `first`.
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

  // Sums the weights as well, in the first part: a chain of additions on which nothing else
  // depends.
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
    LinesAhead lines(in, columns.pass, kGroupKeys / kQuad * kCount);
    for (std::int32_t g = in.begin / kGroupKeys; g * kGroupKeys < in.end; ++g) {
      const std::int32_t from = std::max(in.begin - g * kGroupKeys, 0) / kQuad;
      const std::int32_t to = (std::min(in.end - g * kGroupKeys, kGroupKeys) + kQuad - 1) / kQuad;
      const std::byte* at = values.groups[static_cast<std::size_t>(g)] + offset + from * next;
      lines.begin(g, at);
      for (std::int32_t q = from; q < to; ++q, at += next) {
        const std::int32_t key = g * kGroupKeys + q * kQuad;
        if (adds_weights) add_weights(key, weight_sums);
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

  HWY_INLINE void add_weights(std::int32_t key, float (&sums)[kRows]) const {
    for (int j = 0; j < kQuad; ++j) {
      for (int r = 0; r < kRows; ++r) sums[r] += weights[r * kTileKeys + key + j];
    }
  }

  // Calls use(row, vector of bytes, half).
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
  float* weights;
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

void add_values(const IntegerSide& values, float* weights, std::int32_t rows,
                const WeightedSums& sums) {
  // With int4, both halves of bytes have sums.
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

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_INTEGERS_INL_H_
