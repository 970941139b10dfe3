// Products with quantised keys and values, compared with sums of exact products of the stored
// numbers. The only allowed error is that of factors rounded to whole numbers.
#include "attention/kernels/integers/integers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "attention/kernels/kernels.h"
#include "support/fused.h"
#include "support/stored_keys.h"
#include "support/tensors.h"

namespace heed { namespace {

using kernels::IntegerTable;
using kernels::kTileKeys;
using kernels::QueryDigits;
using kernels::TileSide;
using testing_support::kNaN;
using testing_support::normal;
using testing_support::StoredSide;

constexpr KvStorage kStorages[] = {KvStorage::kInt8, KvStorage::kInt4};
constexpr std::int32_t kDims[] = {1, 3, 4, 5, 16, 17, 31, 32, 33, 64, 100, 128, 257};

Tensor<float> full(const Shape& shape, float number) {
  Tensor<float> result(shape);
  std::fill_n(result.data(), result.num_elements(), number);
  return result;
}

struct Range {
  std::int32_t begin;
  std::int32_t end;
};
constexpr Range kRanges[] = {{0, 1}, {0, 16}, {3, 18}, {17, 100}, {0, 127}, {5, 128}, {0, 128}};

class Integers : public testing_support::TargetTest {
 protected:
  static const IntegerTable& integers() { return *table().integers; }

  // Half a unit of the last digit of the largest factor.
  static constexpr long double kHalfUnit = 0x1p-23L;

  // The rounding when a float is assembled from planes and added to another.
  static constexpr long double kRounding = 4 * std::numeric_limits<float>::epsilon();

  static std::int32_t stored_dim(KvStorage storage, std::int32_t dim) {
    return storage == KvStorage::kInt4 ? (dim + 31) / 32 * 32 : dim;
  }
};
HEED_RUN_ON_EVERY_TARGET(Integers);
HEED_RUN_ON_OTHER_INTEGERS(Integers);

// The digits of rows, [rows][head_dim], as a kernel reads them.
class Digits {
 public:
  Digits(const IntegerTable& integers, KvStorage storage, const Tensor<float>& query)
      : head_dim_(static_cast<std::int32_t>(query.extent(1))),
        memory_(static_cast<std::size_t>(query.extent(0) * QueryDigits::row_bytes(head_dim_))) {
    const auto rows = static_cast<std::int32_t>(query.extent(0));
    Tensor<float> turned({query.extent(1), query.extent(0)});
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t d = 0; d < head_dim_; ++d) turned(d, r) = query(r, d);
    }
    integers.take_query(storage, turned.data(), rows, rows, get());
  }
  QueryDigits get() { return {memory_.data(), head_dim_}; }

 private:
  std::int32_t head_dim_;
  std::vector<std::byte> memory_;
};

Tensor<float> products(const IntegerTable& integers, const StoredSide& keys, Range range,
                       const Tensor<float>& query) {
  const auto dim = static_cast<std::int32_t>(query.extent(1));
  const auto rows = static_cast<std::int32_t>(query.extent(0));
  const auto numbers = keys.tile(0, kTileKeys);
  const TileSide side(numbers, kTileKeys, dim, sizeof(float));
  Digits digits(integers, numbers.storage, query);
  Tensor<float> result({rows, kTileKeys});
  integers.multiply_keys({side, dim, range.begin, range.end}, digits.get(), rows, result.data());
  return result;
}

// Pads rows to the stored dimension.
Tensor<float> filled_up(const Tensor<float>& rows, std::int32_t dim) {
  Tensor<float> result({rows.extent(0), dim});
  for (std::int64_t r = 0; r < rows.extent(0); ++r) {
    std::copy_n(&rows(r, 0), rows.extent(1), &result(r, 0));
  }
  return result;
}

TEST_P(Integers, ProductsWithKeysAreAsExactAsDigits) {
  for (const KvStorage storage : kStorages) {
    for (const std::int32_t given : kDims) {
      const std::int32_t dim = stored_dim(storage, given);
      const Tensor<float> key = filled_up(normal<float>({kTileKeys, given}, 1), dim);
      const StoredSide stored(key, storage, true);
      for (const std::int32_t rows : {1, 2, 3, 4, 5, 8}) {
        const Tensor<float> query = normal<float>({rows, dim}, static_cast<std::uint64_t>(rows));
        for (const Range range : kRanges) {
          const Tensor<float> found = products(integers(), stored, range, query);
          for (std::int32_t r = 0; r < rows; ++r) {
            float largest = 0;
            for (std::int32_t d = 0; d < dim; ++d) {
              largest = std::max(largest, std::abs(query(r, d)));
            }
            for (std::int32_t j = range.begin; j < range.end; ++j) {
              long double sum = 0;
              long double magnitude = 0;
              long double allowed = 0;
              for (std::int32_t d = 0; d < dim; ++d) {
                const long double product =
                    static_cast<long double>(query(r, d)) * stored.stored()(j, d);
                sum += product;
                magnitude += std::abs(product);
                allowed += kHalfUnit * 2 * largest * std::abs(stored.stored()(j, d));
              }
              ASSERT_NEAR(found(r, j), static_cast<double>(sum),
                          static_cast<double>(allowed + kRounding * magnitude))
                  << to_string(storage) << ", dim " << dim << ", row " << r << " of " << rows
                  << ", key " << j;
            }
          }
        }
      }
    }
  }
}

TEST_P(Integers, ARowDoesNotDependOnItsNeighbours) {
  for (const KvStorage storage : kStorages) {
    const StoredSide stored(normal<float>({kTileKeys, 96}, 1), storage, true);
    const Tensor<float> query = normal<float>({8, 96}, 2);
    const Tensor<float> together = products(integers(), stored, {0, 128}, query);
    for (std::int64_t r = 0; r < 8; ++r) {
      Tensor<float> one({1, 96});
      std::copy_n(&query(r, 0), 96, one.data());
      const Tensor<float> alone = products(integers(), stored, {0, 128}, one);
      for (std::int64_t j = 0; j < kTileKeys; ++j) ASSERT_EQ(alone(0, j), together(r, j));
    }
  }
}

TEST_P(Integers, UnitsFollowWhateverIsLargest) {
  const std::int32_t dim = 64;
  for (const KvStorage storage : kStorages) {
    const StoredSide stored(normal<float>({kTileKeys, dim}, 1), storage, true);
    for (const float factor : {0x1p-140F, 0x1p-100F, 1e-20F, 1.0F, 1e20F, 0x1p110F}) {
      Tensor<float> query = normal<float>({1, dim}, 2);
      // The largest number that is a whole number of this many bits, and the next one.
      query(0, 5) = 7.9999995F;
      query(0, 6) = -8.0F;
      for (float& number : query.elements()) number *= factor;
      const Tensor<float> found = products(integers(), stored, {0, 128}, query);
      for (std::int32_t j = 0; j < kTileKeys; ++j) {
        long double sum = 0;
        long double magnitude = 0;
        for (std::int32_t d = 0; d < dim; ++d) {
          sum += static_cast<long double>(query(0, d)) * stored.stored()(j, d);
          magnitude += std::abs(stored.stored()(j, d));
        }
        // Products of scales and units below 2⁻¹²⁶ lose digits.
        ASSERT_NEAR(found(0, j), static_cast<double>(sum),
                    static_cast<double>(kHalfUnit * 16 * factor * magnitude) + 0x1p-120)
            << factor << " " << j;
      }
    }
    Tensor<float> none({1, dim});
    EXPECT_EQ(products(integers(), stored, {0, 128}, none)(0, 3), 0);
    none(0, 2) = kNaN;
    EXPECT_TRUE(std::isnan(products(integers(), stored, {0, 128}, none)(0, 3)));
    none(0, 2) = -std::numeric_limits<float>::infinity();
    EXPECT_TRUE(std::isnan(products(integers(), stored, {0, 128}, none)(0, 3)));
  }
}

// Has more dimensions than a 32-bit sum supports.
TEST_P(Integers, LongRowsAreDivided) {
  const std::int32_t dim = 3 * kernels::kIntegerDims + 7;
  const Tensor<float> key = full({kTileKeys, dim}, 1);
  const Tensor<float> query = full({2, dim}, 3);
  const StoredSide stored(key, KvStorage::kInt8, true);
  const Tensor<float> found = products(integers(), stored, {0, 128}, query);
  for (std::int32_t j = 0; j < kTileKeys; ++j) {
    const float one = stored.stored()(j, 0);
    ASSERT_NEAR(found(1, j), 3.0 * dim * one, 1e-6 * 3 * dim);
  }
}

struct Sums {
  Tensor<float> weights;
  Tensor<float> out;
};
Sums weighted(const IntegerTable& integers, const StoredSide& values, std::int32_t dim, Range range,
              Tensor<float> weights) {
  const auto rows = static_cast<std::int32_t>(weights.extent(0));
  const auto numbers = values.tile(0, kTileKeys);
  const TileSide side(numbers, kTileKeys, dim, sizeof(float));
  Sums sums{full({rows}, 0.5F), full({rows, (dim + 15) / 16 * 16}, 0.25F)};
  integers.add_values({side, dim, range.begin, range.end}, weights.data(), rows,
                      {sums.weights.data(), sums.out.data(), sums.out.extent(1)});
  return sums;
}

// Returns the weights of visible keys, with 0 elsewhere in the vectors from begin to end.
Tensor<float> weights_of(std::int32_t rows, Range range) {
  Tensor<float> weights = normal<float>({rows, kTileKeys}, 9);
  for (std::int32_t r = 0; r < rows; ++r) {
    for (std::int32_t j = 0; j < kTileKeys; ++j) {
      float& weight = weights(r, j);
      weight = j < range.begin || j >= range.end ? 0 : std::exp2(8 * weight);
    }
  }
  return weights;
}

TEST_P(Integers, SumsOfValuesAreAsExactAsDigits) {
  for (const KvStorage storage : kStorages) {
    for (const std::int32_t given : kDims) {
      const std::int32_t dim = stored_dim(storage, given);
      const Tensor<float> value = filled_up(normal<float>({kTileKeys, given}, 1), dim);
      const StoredSide stored(value, storage, false);
      for (const std::int32_t rows : {1, 2, 3, 4, 5, 8}) {
        for (const Range range : kRanges) {
          const Tensor<float> weights = weights_of(rows, range);
          const Sums found = weighted(integers(), stored, dim, range, weights);
          for (std::int32_t r = 0; r < rows; ++r) {
            float sum = 0;
            for (std::int32_t j = range.begin; j < range.end; ++j) sum += weights(r, j);
            ASSERT_EQ(found.weights(r), 0.5F + sum);
            for (std::int32_t d = 0; d < dim; ++d) {
              long double exact = 0.25;
              long double magnitude = 0.25;
              // A number is at most 127 or 7 times its scale.
              long double largest = 0;
              for (std::int32_t j = range.begin; j < range.end; ++j) {
                const long double product =
                    static_cast<long double>(weights(r, j)) * stored.stored()(j, d);
                exact += product;
                magnitude += std::abs(product);
                largest = std::max(largest, static_cast<long double>(weights(r, j)));
              }
              const long double allowed = kHalfUnit * 2 * largest * 5 * (range.end - range.begin);
              ASSERT_NEAR(found.out(r, d), static_cast<double>(exact),
                          static_cast<double>(allowed + kRounding * magnitude))
                  << to_string(storage) << ", dim " << dim << ", row " << r << " of " << rows
                  << ", column " << d << ", keys " << range.begin << " to " << range.end;
            }
          }
        }
      }
    }
  }
}

TEST_P(Integers, WeightsThatAreNoNumbers) {
  for (const KvStorage storage : kStorages) {
    const StoredSide stored(normal<float>({kTileKeys, 32}, 1), storage, false);
    Tensor<float> weights = weights_of(2, {0, 128});
    const Sums before = weighted(integers(), stored, 32, {0, 128}, weights);
    weights(0, 3) = kNaN;
    Sums found = weighted(integers(), stored, 32, {0, 128}, weights);
    EXPECT_TRUE(std::isnan(found.weights(0)));
    for (std::int32_t d = 0; d < 32; ++d) {
      ASSERT_TRUE(std::isnan(found.out(0, d)));
      ASSERT_EQ(found.out(1, d), before.out(1, d));
    }
    // The placeholder of a hidden key counts as 0.
    weights(0, 3) = 0;
    const Sums without = weighted(integers(), stored, 32, {0, 128}, weights);
    weights(0, 3) = kernels::kUnseen;
    found = weighted(integers(), stored, 32, {0, 128}, weights);
    EXPECT_EQ(found.weights(0), without.weights(0));
    for (std::int32_t d = 0; d < 32; ++d) ASSERT_EQ(found.out(0, d), without.out(0, d));
  }
}

}  // namespace
}  // namespace heed
