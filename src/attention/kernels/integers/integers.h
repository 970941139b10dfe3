// Products with what a cache stores in eight or four bits, as whole numbers: what the kernels work
// on, and their table.
//
// The factors of a row, elements of a query or weights of keys, become whole numbers of 23 bits and
// a sign times a power of two, their unit, that the largest of them chooses. Products of these and
// sums of the products are exact, so that no order of summation tells. A sum becomes a float once,
// and then is multiplied by scale and unit.
//
// Instructions multiply numbers of eight or sixteen bits: factors are divided into digits with a
// sign, and each of their planes is summed by itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/kernels/decode/prefetch.h"
#include "attention/kernels/decode/stored_tile.h"

namespace heed { inline namespace v0 { namespace kernels {

// Dimensions after which sums over dimensions become floats, where they have one scale: they fit 32
// bits.
inline constexpr std::int32_t kIntegerDims = 4096;

// Dimensions of keys whose products are summed as whole numbers.
constexpr std::int32_t integer_dims(KvStorage storage) {
  return storage == KvStorage::kInt4 ? kScaleDims : kIntegerDims;
}

// The digits of the rows of a query, one row behind the other, as only the kernels know them.
struct QueryDigits {
  std::byte* rows = nullptr;
  std::int32_t head_dim = 0;

  // Bytes of a row: its unit, what its sums begin with, and the digits, of at most 32 bits.
  static std::int64_t start_bytes(std::int32_t head_dim) {
    constexpr std::int64_t kUnit = 16;
    constexpr std::int64_t kStarts = 16;  // of a block of dimensions
    return kUnit + kStarts * ((head_dim - 1) / kScaleDims + 1);
  }
  static std::int64_t row_bytes(std::int32_t head_dim) {
    return start_bytes(head_dim) + (head_dim + kScaleDims - 1) / kScaleDims * kScaleDims * 4;
  }
  QueryDigits from(std::int32_t row) const { return {rows + row * row_bytes(head_dim), head_dim}; }
};

// One side of a tile as it meets some rows: its keys from `begin` to `end`. Values of int4 have a
// multiple of kScaleDims dimensions. Meanwhile the groups of `ahead`, unless it is null, are
// fetched, each while the one of the same number is multiplied; or else, if it `fetches_stretch`,
// what lies kStretchAhead farther on.
struct IntegerSide {
  const TileSide& side;
  std::int32_t dim = 0;
  std::int32_t begin = 0;
  std::int32_t end = 0;
  const TileSide* ahead = nullptr;
  bool fetches_stretch = false;
};

// What weights add up to: weights[r] += Σ_j weights[r][j], one by one, and
// out[r · stride + d] += Σ_j weights[r][j] · value[j][d], for d up to whole vectors.
struct WeightedSums {
  float* weights = nullptr;
  float* out = nullptr;
  std::int64_t stride = 0;
};

struct IntegerTable {
  // Makes the digits of the first rows of a query, [head_dim][width].
  void (*take_query)(KvStorage storage, const float* query, std::int32_t width,
                     std::int32_t num_rows, const QueryDigits& digits);
  // products[r][j] = query r · key j, [rows][kTileKeys], for vectors of keys that reach from begin
  // to end.
  void (*multiply_keys)(const IntegerSide& keys, const QueryDigits& query, std::int32_t rows,
                        float* products);
  // Adds up over the keys from begin to end. Weights, [rows][kTileKeys], that are 0 or less become
  // 0.
  void (*add_values)(const IntegerSide& values, float* weights, std::int32_t rows,
                     const WeightedSums& sums);
};

}}}  // namespace heed::v0::kernels
