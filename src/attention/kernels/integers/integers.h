// Integer products with numbers that a cache stores in 8 or 4 bits: the arguments of the kernels,
// and their table.
//
// The factors of a row, which are elements of a query or weights of keys, become signed integers of
// 23 bits times a power of two, their unit, which depends on the largest of them. Products of these
// and their sums are exact, so that results do not depend on the order of summation. A sum is
// converted to float once, and then multiplied by scale and unit.
//
// As instructions multiply numbers of 8 or 16 bits, factors are divided into signed digits; each
// plane of digits has sums of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/kernels/decode/prefetch.h"
#include "attention/kernels/decode/stored_tile.h"

namespace heed { inline namespace v0 { namespace kernels {

// The largest number of dimensions with one scale whose sum fits 32 bits. More are summed as
// floats.
inline constexpr std::int32_t kIntegerDims = 4096;

// The number of dimensions of keys that are summed as integers.
constexpr std::int32_t integer_dims(KvStorage storage) {
  return storage == KvStorage::kInt4 ? kScaleDims : kIntegerDims;
}

// The digits of the rows of a query, row after row, in a layout that only the kernels know.
struct QueryDigits {
  std::byte* rows = nullptr;
  std::int32_t head_dim = 0;

  // The bytes of a row: its unit, the initial values of its sums, and the digits, of at most 32
  // bits.
  static std::int64_t start_bytes(std::int32_t head_dim) {
    constexpr std::int64_t kUnit = 16;
    constexpr std::int64_t kStarts = 16;  // for each block of dimensions
    return kUnit + kStarts * ((head_dim - 1) / kScaleDims + 1);
  }
  static std::int64_t row_bytes(std::int32_t head_dim) {
    return start_bytes(head_dim) + (head_dim + kScaleDims - 1) / kScaleDims * kScaleDims * 4;
  }
  QueryDigits from(std::int32_t row) const { return {rows + row * row_bytes(head_dim), head_dim}; }
};

// One side of a tile: its keys from `begin` to `end`. Values of int4 have a multiple of kScaleDims
// dimensions. Unless `ahead` is null, its groups are fetched, each while the group with the same
// number is multiplied. Otherwise, if fetches_stretch is true, the memory kStretchAhead further on
// is fetched.
struct IntegerSide {
  const TileSide& side;
  std::int32_t dim = 0;
  std::int32_t begin = 0;
  std::int32_t end = 0;
  const TileSide* ahead = nullptr;
  bool fetches_stretch = false;
};

// The sums of weights and values: weights[r] += Σ_j weights[r][j], one by one, and out[r · stride +
// d] += Σ_j weights[r][j] · value[j][d], for d in whole vectors.
struct WeightedSums {
  float* weights = nullptr;
  float* out = nullptr;
  std::int64_t stride = 0;
};

struct IntegerTable {
  // Makes the digits of the first num_rows rows of a query, [head_dim][width].
  void (*take_query)(KvStorage storage, const float* query, std::int32_t width,
                     std::int32_t num_rows, const QueryDigits& digits);
  // products[r][j] = query r · key j, [rows][kTileKeys], for the vectors of keys from begin to end.
  void (*multiply_keys)(const IntegerSide& keys, const QueryDigits& query, std::int32_t rows,
                        float* products);
  // Adds to `sums` over the keys from begin to end. Weights are [rows][kTileKeys]; those ≤ 0 become
  // 0.
  void (*add_values)(const IntegerSide& values, float* weights, std::int32_t rows,
                     const WeightedSums& sums);
};

}}}  // namespace heed::v0::kernels
