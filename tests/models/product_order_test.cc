// The order of products with stored weights, in plain loops: that of vectors of sixteen floats,
// which every instruction set keeps. Sets with fused multiply-adds then have the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "heed/core/data_type.h"
#include "models/kernels/weight_kernels.h"
#include "models/weight_product.h"
#include "support/stored_weights.h"
#include "support/tensors.h"

namespace heed::models { namespace {

using testing_support::awkward_columns;
using testing_support::bell_numbers;
using testing_support::kWeightTypes;
using testing_support::product;
using testing_support::same_bits;
using testing_support::StoredWeights;

constexpr int kVector = 16;
using Lanes = std::array<float, kVector>;

// The products of one instruction set, spelled out.
class PlainOrder {
 public:
  explicit PlainOrder(bool is_fused) : is_fused_(is_fused) {}

  // Of a row of weights, which are `decoded` as floats.
  float product(const WeightRows& w, const float* decoded, std::int64_t row, const float* x) const {
    switch (w.type) {
      case WeightType::kQ8_0:
        return of_bytes(w.row(row), w.columns, x);
      case WeightType::kQ4_0:
      case WeightType::kQ4_1:
        return of_nibbles(w.type, w.row(row), w.columns, x);
      default:
        return of_floats(decoded + row * w.columns, w.columns, x);
    }
  }

  // Of decoded weights: partial sums of 64 columns, each a chain in the order of columns.
  float long_product(const float* w, std::int64_t columns, const float* x) const {
    float sum = 0;
    for (std::int64_t first = 0; first < columns; first += 64) {
      float part = 0;
      for (std::int64_t c = first; c < std::min(first + 64, columns); ++c) {
        part = multiply_add(x[c], w[c], part);
      }
      sum = first == 0 ? part : sum + part;
    }
    return sum;
  }

 private:
  float multiply_add(float a, float b, float sum) const {
    return is_fused_ ? std::fma(a, b, sum) : a * b + sum;
  }

  static float sum_of(Lanes lanes) {
    for (int half = kVector / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
    }
    return lanes[0];
  }

  void add(const float* w, const float* x, std::int64_t count, Lanes& sums) const {
    for (int i = 0; i < kVector; ++i) {
      const bool has = i < count;
      sums[i] = multiply_add(has ? w[i] : 0.0F, has ? x[i] : 0.0F, sums[i]);
    }
  }

  // Two vectors of sums in turn; a last vector that is not whole is added to the second ones.
  float of_floats(const float* w, std::int64_t columns, const float* x) const {
    Lanes even{};
    Lanes odd{};
    std::int64_t c = 0;
    for (; c + 2 * kVector <= columns; c += 2 * kVector) {
      add(w + c, x + c, kVector, even);
      add(w + c + kVector, x + c + kVector, kVector, odd);
    }
    if (c + kVector <= columns) {
      add(w + c, x + c, kVector, even);
      c += kVector;
    }
    if (c < columns) add(w + c, x + c, columns - c, odd);
    for (int i = 0; i < kVector; ++i) even[i] += odd[i];
    return sum_of(even);
  }

  static float half_at(const std::byte* at) {
    std::uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    return Float16::from_bits(bits);
  }

  float of_bytes(const std::byte* block, std::int64_t columns, const float* x) const {
    Lanes sums{};
    for (std::int64_t c = 0; c < columns; c += kWeightBlock) {
      const float scale = half_at(block);
      const auto weight = [&](int i) {
        return static_cast<float>(static_cast<std::int8_t>(block[2 + i]));
      };
      for (int i = 0; i < kVector; ++i) {
        const float first = weight(i) * x[c + i];
        const float product = multiply_add(weight(kVector + i), x[c + kVector + i], first);
        sums[i] = multiply_add(product, scale, sums[i]);
      }
      block += format_of(WeightType::kQ8_0).block_bytes;
    }
    return sum_of(sums);
  }

  // Four chains, of the nibbles of a word by turns.
  float of_nibbles(WeightType type, const std::byte* block, std::int64_t columns,
                   const float* x) const {
    const bool has_minimum = type == WeightType::kQ4_1;
    std::vector<float> arranged(static_cast<std::size_t>(columns));
    arrange_numbers(x, columns, arranged.data());
    const float* numbers = arranged.data();
    float sum = 0;
    for (std::int64_t c = 0; c < columns; c += kWeightBlock) {
      const float scale = half_at(block);
      const float minimum = has_minimum ? half_at(block + 2) : scale * -8.0F;
      const std::byte* const pairs = block + (has_minimum ? 4 : 2);
      float chains[4] = {};
      for (int i = 0; i < kWeightBlock; ++i) {
        const int pair = std::to_integer<int>(pairs[i / 2]);
        const int nibble = i % 2 == 0 ? pair & 15 : pair >> 4;
        const int in_word = i % 8;
        const auto weight = static_cast<float>(std::ldexp(nibble, in_word == 7 ? 0 : 4 * in_word));
        chains[i % 4] = multiply_add(weight, *numbers++, chains[i % 4]);
      }
      sum = multiply_add(((chains[0] + chains[1]) + chains[2]) + chains[3], scale, sum);
      Lanes of_numbers;
      for (int i = 0; i < kVector; ++i) of_numbers[i] = x[c + i] + x[c + kVector + i];
      sum = multiply_add(minimum, sum_of(of_numbers), sum);
      block += format_of(type).block_bytes;
    }
    return sum;
  }

  bool is_fused_;
};

class ProductOrder : public testing::TestWithParam<const WeightKernels*> {
 protected:
  static PlainOrder order() { return PlainOrder(std::string(GetParam()->name) != "SSE4"); }
};

INSTANTIATE_TEST_SUITE_P(Of, ProductOrder,
                         testing::ValuesIn(supported_weight_kernels().begin(),
                                           supported_weight_kernels().end() - 1),
                         [](const auto& test) { return std::string(test.param->name); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ProductOrder);

TEST_P(ProductOrder, OfFewRowsIsThatOfVectorsOfSixteen) {
  for (const WeightType type : kWeightTypes) {
    for (const std::int64_t columns : awkward_columns(type)) {
      const StoredWeights weights(type, 19, columns);
      const Tensor<float> floats = weights.floats();
      for (std::int64_t n = 1; n <= 5; ++n) {
        const Tensor<float> x = bell_numbers({n, columns}, static_cast<std::uint32_t>(n));
        Tensor<float> expected({n, 19});
        for (std::int64_t i = 0; i < n; ++i) {
          for (std::int64_t r = 0; r < 19; ++r) {
            expected(i, r) =
                order().product(weights.rows(), floats.data(), r, x.data() + i * columns);
          }
        }
        EXPECT_TRUE(same_bits(product(*GetParam(), weights.rows(), x), expected))
            << to_string(type) << ", " << n << " rows of " << columns;
      }
    }
  }
}

TEST_P(ProductOrder, OfManyRowsIsThatOfColumns) {
  for (const WeightType type : kWeightTypes) {
    for (const std::int64_t columns : awkward_columns(type)) {
      const StoredWeights weights(type, 20, columns);
      const Tensor<float> floats = weights.floats();
      const Tensor<float> x = bell_numbers({17, columns}, 3);
      Tensor<float> expected({17, 20});
      for (std::int64_t i = 0; i < 17; ++i) {
        for (std::int64_t r = 0; r < 20; ++r) {
          expected(i, r) =
              order().long_product(floats.data() + r * columns, columns, x.data() + i * columns);
        }
      }
      EXPECT_TRUE(same_bits(product(*GetParam(), weights.rows(), x), expected))
          << to_string(type) << ", " << columns << " columns";
    }
  }
}

}  // namespace

}  // namespace heed::models
