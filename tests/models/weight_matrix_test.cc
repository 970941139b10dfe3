#include "heed/models/weight_matrix.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "heed/core/data_type.h"
#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "io/io_test_util.h"
#include "models/kernels/weight_kernels.h"
#include "models/weight_product.h"
#include "support/gguf_builder.h"
#include "support/stored_weights.h"
#include "support/tensors.h"

namespace heed::models { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::kWeightTypes;
using testing_support::normal;
using testing_support::product;
using testing_support::same_bits;
using testing_support::with_groups;
using Weights = testing_support::StoredWeights;

template <class Real>
Tensor<Real> plain_product(FloatView x, const Tensor<float>& w) {
  Tensor<Real> out({x.extent(0), w.extent(0)});
  for (std::int64_t i = 0; i < x.extent(0); ++i) {
    for (std::int64_t r = 0; r < w.extent(0); ++r) {
      const float* const numbers = x.data() + i * x.stride(0);
      const float* const weights = w.data() + r * w.extent(1);
      Real sum = 0;
      for (std::int64_t c = 0; c < w.extent(1); ++c) {
        sum += static_cast<Real>(numbers[c]) * static_cast<Real>(weights[c]);
      }
      out(i, r) = sum;
    }
  }
  return out;
}

// The root mean square of found − exact, and the largest result.
struct Distance {
  double error = 0;
  double largest = 0;
};
Distance distance(FloatView found, DoubleView exact) {
  Distance result;
  for (std::int64_t i = 0; i < exact.num_elements(); ++i) {
    const double value = exact.data()[i];
    result.error += std::pow(static_cast<double>(found.data()[i]) - value, 2);
    result.largest = std::max(result.largest, std::abs(value));
  }
  result.error = std::sqrt(result.error / static_cast<double>(exact.num_elements()));
  return result;
}

class WeightProduct : public testing::TestWithParam<const WeightKernels*> {
 protected:
  // Checks the first n of 65 rows for n = 1 to 65.
  static void expect_accurate(WeightType type, std::int64_t rows, std::int64_t columns) {
    const Weights weights(type, rows, columns);
    const Tensor<float> x = normal<float>({65, columns}, 2);
    const Tensor<float> floats = weights.floats();
    const auto exact = plain_product<double>(x, floats);
    const auto plain = plain_product<float>(x, floats);
    for (const std::int64_t n : {1, 2, 3, 4, 5, 7, 8, 9, 12, 13, 15, 17, 64, 65}) {
      const auto some = [n](const auto& tensor) { return tensor.view().slice(0, 0, n); };
      const Distance expected = distance(some(plain), some(exact));
      const auto found = product(*GetParam(), weights.rows(), some(x));
      // A plain loop may be lucky: two roundings of the largest result are always allowed.
      EXPECT_LE(distance(found, some(exact)).error,
                std::max(2 * expected.error, expected.largest * 0x1p-23))
          << to_string(type) << " [" << rows << ", " << columns << "], n " << n;
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Of, WeightProduct, testing::ValuesIn(supported_weight_kernels()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST_P(WeightProduct, IsAsAccurateAsAPlainLoop) {
  for (const WeightType type : kWeightTypes) {
    const bool has_blocks = format_of(type).block_elements > 1;
    for (const std::int64_t columns : has_blocks ? std::vector<std::int64_t>{32, 64, 96, 576}
                                                 : std::vector<std::int64_t>{1, 31, 33, 97, 576}) {
      expect_accurate(type, 13, columns);
    }
    expect_accurate(type, 300, 32);
    expect_accurate(type, 24, 544);
    expect_accurate(type, 7, 1536);
  }
}

TEST_P(WeightProduct, HasTheSameBitsForAnyThreadsAndInputsBeside) {
  for (const WeightType type : kWeightTypes) {
    const Weights weights(type, 1000, 320);
    for (const std::int64_t n : {1, 2, 3, 6, 40}) {
      const Tensor<float> x = normal<float>({n, 320}, 3);
      std::vector<Tensor<float>> results;
      for (const int threads : {1, 2, 5}) {
        set_num_threads(threads);
        results.push_back(product(*GetParam(), weights.rows(), x));
      }
      set_num_threads(0);
      EXPECT_TRUE(same_bits(results[0], results[1])) << to_string(type) << ' ' << n;
      EXPECT_TRUE(same_bits(results[0], results[2])) << to_string(type) << ' ' << n;
      // Compares a small or a large group of rows with the same rows of the whole product.
      const std::int64_t count = n > kFewInputRows ? kFewInputRows + 1 : 1;
      for (std::int64_t i = 0; i + count <= n; ++i) {
        const auto alone = product(*GetParam(), weights.rows(), x.view().slice(0, i, i + count));
        EXPECT_TRUE(same_bits(alone, to_tensor(FloatView(results[0]).slice(0, i, i + count))))
            << to_string(type) << ' ' << n << ' ' << i;
      }
    }
  }
}

// More rows than are multiplied by the panels of weights at a time.
TEST_P(WeightProduct, OfVeryManyRowsIsThatOfEach) {
  const Weights weights(WeightType::kQ8_0, 50, 64);
  const Tensor<float> x = normal<float>({1030, 64}, 9);
  const auto all = product(*GetParam(), weights.rows(), x);
  for (const std::int64_t first : {0, 505, 1010}) {
    const auto some = product(*GetParam(), weights.rows(), x.view().slice(0, first, first + 20));
    EXPECT_TRUE(same_bits(some, to_tensor(FloatView(all).slice(0, first, first + 20)))) << first;
  }
}

// Rows from the middle of a group have the bits that they have among all.
TEST_P(WeightProduct, OfSomeRowsOfWeightsIsPartOfAll) {
  for (const WeightType type : kWeightTypes) {
    const Weights weights(type, 61, 96);
    for (const std::int64_t n : {1, 3, 20}) {
      const Tensor<float> x = normal<float>({n, 96}, 3);
      const auto all = product(*GetParam(), weights.rows(), x);
      Tensor<float> some({n, 40});
      with_groups(weights.rows(), [&](const WeightRows& rows) {
        multiply(*GetParam(), rows.slice(2, 60).slice(5, 45), x, {}, some);
      });
      EXPECT_TRUE(same_bits(some, to_tensor(FloatView(all).slice(1, 7, 47)))) << to_string(type);
    }
  }
}

TEST(WeightGroups, GiveBackEveryRow) {
  for (const WeightType type : {WeightType::kQ4_0, WeightType::kQ4_1}) {
    const Weights weights(type, 37, 160);
    with_groups(weights.rows(), [&](const WeightRows& groups) {
      std::vector<std::byte> memory(static_cast<std::size_t>(groups.row_bytes));
      for (std::int64_t row = 0; row < 37; ++row) {
        const std::byte* const stored = stored_columns(groups, row, 64, 96, memory.data());
        const std::byte* const expected = weights.rows().row(row) + 2 * format_of(type).block_bytes;
        EXPECT_TRUE(std::equal(expected, expected + 3 * format_of(type).block_bytes, stored));
      }
    });
  }
}

TEST(WeightGroups, ArrangeNumbersForNibblesInTheirPlaces) {
  std::vector<float> x(64);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
  std::vector<float> arranged(64);
  arrange_numbers(x.data(), 64, arranged.data());
  EXPECT_EQ(arranged[0], 1);                      // column 0, the low nibble of the first byte
  EXPECT_EQ(arranged[1], 17.0F / 16);             // column 16, the high one
  EXPECT_EQ(arranged[2], 2.0F / 256);             // column 1
  EXPECT_EQ(arranged[6], std::ldexp(4.0F, -24));  // column 3
  EXPECT_EQ(arranged[7], 20);                     // column 19, which is shifted
  EXPECT_EQ(arranged[32 + 8], 37);                // column 36
}

TEST_P(WeightProduct, DecodesToTheBitsOfPlainLoops) {
  for (const WeightType type : kWeightTypes) {
    for (const std::int64_t columns : {0, 32, 96, 33, 7}) {
      if (columns % format_of(type).block_elements != 0) continue;
      const Weights weights(type, 1, columns);
      Tensor<float> found({1, columns});
      GetParam()->decode(type, weights.rows().bytes, columns, found.data());
      EXPECT_TRUE(same_bits(found, weights.floats())) << to_string(type) << ' ' << columns;
    }
  }
}

TEST_P(WeightProduct, DecodesEveryFloat16) {
  std::vector<std::uint16_t> bits(1U << 16);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  std::vector<float> found(bits.size());
  for (const WeightType type : {WeightType::kFloat16, WeightType::kBFloat16}) {
    GetParam()->decode(type, std::as_bytes(std::span(bits)).data(), std::ssize(bits), found.data());
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const float expected = type == WeightType::kFloat16 ? float{Float16::from_bits(bits[i])}
                                                          : float{BFloat16::from_bits(bits[i])};
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(found[i]));
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(expected));
      }
    }
  }
}

// A block's bytes after its scale never act as a NaN.
TEST_P(WeightProduct, TakesBytesThatLookLikeNaN) {
  for (const WeightType type : {WeightType::kQ8_0, WeightType::kQ4_0, WeightType::kQ4_1}) {
    std::string block(static_cast<std::size_t>(format_of(type).block_bytes), '\x7F');
    const std::string one = testing_support::raw(Float16(1).bits());
    block.replace(0, 2, one);
    if (type == WeightType::kQ4_1) block.replace(2, 2, one);
    const WeightRows w{.type = type,
                       .bytes = bytes_of(block).data(),
                       .num_rows = 1,
                       .columns = 32,
                       .row_bytes = format_of(type).block_bytes};
    const Tensor<float> x({1, 32}, std::vector<float>(32, 1.0F));
    const float expected = type == WeightType::kQ8_0   ? 127.0F * 32
                           : type == WeightType::kQ4_0 ? 7.0F * 16 - 16
                                                       : 16.0F * 16 + 8 * 16;
    EXPECT_EQ(product(*GetParam(), w, x)(0, 0), expected) << to_string(type);
  }
}

TEST_P(WeightProduct, OfNothing) {
  for (const WeightType type : kWeightTypes) {
    const Weights none(type, 0, 32);
    EXPECT_EQ(product(*GetParam(), none.rows(), Tensor<float>({3, 32})).shape(), (Shape{3, 0}));
    const Weights some(type, 3, 32);
    EXPECT_EQ(product(*GetParam(), some.rows(), Tensor<float>({0, 32})).shape(), (Shape{0, 3}));
    const Weights thin(type, 3, 0);
    for (const std::int64_t n : {1, 9}) {
      EXPECT_TRUE(same_bits(product(*GetParam(), thin.rows(), Tensor<float>({n, 0})),
                            Tensor<float>({n, 3})));
    }
  }
}

TEST_P(WeightProduct, AddsBiasAndLeavesGapsAlone) {
  const Tensor<float> bias = normal<float>({70}, 4);
  for (const WeightType type : kWeightTypes) {
    const Weights weights(type, 70, 64);
    for (const std::int64_t n : {2, 20}) {
      const Tensor<float> wide = normal<float>({n, 80}, 5);
      const FloatView x = wide.view().slice(1, 3, 67);
      Tensor<float> out({n, 100});
      std::fill(out.elements().begin(), out.elements().end(), 7.0F);
      with_groups(weights.rows(), [&](const WeightRows& rows) {
        multiply(*GetParam(), rows, x, bias.elements(), out.view().slice(1, 10, 80));
      });
      const auto expected = plain_product<double>(x, weights.floats());
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t r = 0; r < 100; ++r) {
          const bool is_result = r >= 10 && r < 80;
          const double value = is_result ? expected(i, r - 10) + double{bias(r - 10)} : 7.0;
          EXPECT_NEAR(out(i, r), value, is_result ? 1e-5 * (10 + std::abs(value)) : 0)
              << to_string(type);
        }
      }
    }
  }
}

TEST(WeightKernels, ThoseOfAttentionsInstructionSetAreInUse) {
  EXPECT_STREQ(supported_weight_kernels().back()->name, "reference");
  if (std::getenv("HEED_TARGET") == nullptr) {
    EXPECT_EQ(&weight_kernels_in_use(), supported_weight_kernels().front());
  }
}

class WeightMatrices : public IoTest {};

TEST_F(WeightMatrices, OfACheckpointKeepItMapped) {
  const Weights weights(WeightType::kQ4_1, 5, 64);
  const StoredTensor tensor = weights.tensor();
  write_text(path("m.gguf"), testing_support::GgufBuilder()
                                 .add_tensor("w", {64, 5}, 3,
                                             {reinterpret_cast<const char*>(tensor.bytes.data()),
                                              tensor.bytes.size()})
                                 .build());
  WeightMatrix w;
  {
    const Checkpoint checkpoint = Checkpoint::open(path("m.gguf"));
    w = WeightMatrix(checkpoint, checkpoint.tensor("w"));
  }
  EXPECT_EQ(w.rows(), 5);
  EXPECT_EQ(w.columns(), 64);
  EXPECT_EQ(w.type(), WeightType::kQ4_1);
  EXPECT_EQ(w.num_bytes(), 5 * 40);
  EXPECT_TRUE(same_bits(w.to_float(), weights.floats()));
  const Tensor<float> x = normal<float>({2, 64}, 6);
  Tensor<float> out({2, 5});
  w.multiply(x, {}, out);
  EXPECT_TRUE(same_bits(out, product(weight_kernels_in_use(), weights.rows(), x)));
}

TEST(WeightMatrix, OfNumbers) {
  const Tensor<float> elements = normal<float>({6, 3}, 7);
  const WeightMatrix w(elements);
  EXPECT_EQ(w.type(), WeightType::kFloat32);
  EXPECT_EQ(w.num_bytes(), 72);
  EXPECT_TRUE(same_bits(w.to_float(), elements));
  const WeightMatrix part = w.slice_rows(1, 5).slice_rows(1, 3);
  EXPECT_EQ(part.rows(), 2);
  EXPECT_EQ(part.num_bytes(), 24);
  EXPECT_TRUE(same_bits(part.to_float(), to_tensor(elements.view().slice(0, 2, 4))));
  std::vector<float> row(3);
  part.row(1, row);
  EXPECT_EQ(row[2], elements(3, 2));
  for (const std::int64_t n : {1, 30}) {
    const Tensor<float> x = normal<float>({n, 3}, 8);
    Tensor<float> out({n, 2});
    part.multiply(x, {}, out);
    EXPECT_NEAR(out(n - 1, 1), plain_product<double>(x, elements)(n - 1, 3), 1e-6);
  }
}

TEST(WeightMatrix, OfNothing) {
  const WeightMatrix none;
  EXPECT_EQ(none.rows(), 0);
  EXPECT_EQ(none.columns(), 0);
  EXPECT_EQ(none.num_bytes(), 0);
  EXPECT_EQ(none.to_float().shape(), (Shape{0, 0}));
  Tensor<float> out({4, 0});
  none.multiply(Tensor<float>({4, 0}), {}, out);
  EXPECT_EQ(WeightMatrix(Tensor<float>({0, 3})).slice_rows(0, 0).columns(), 3);
}

template <class Call>
void expect_misuse(const Call& call, const std::string& text) {
  EXPECT_THAT(call, ThrowsMessage<InvalidArgument>(HasSubstr(text)));
}

TEST(WeightMatrix, RefusesMisuse) {
  expect_misuse([] { WeightMatrix(Tensor<float>({3})); },
                "WeightMatrix: elements has shape [3], [rows, columns] is expected");
  const WeightMatrix w(Tensor<float>({5, 3}));
  expect_misuse([&] { w.slice_rows(2, 6); },
                "WeightMatrix::slice_rows: [2, 6) is not within the 5 rows");
  expect_misuse([&] { w.slice_rows(-1, 2); }, "[-1, 2) is not within");
  expect_misuse([&] { w.slice_rows(3, 2); }, "[3, 2) is not within");
  expect_misuse(
      [&] { w.copy_rows(1, 2, 3, 1); },
      "WeightMatrix::copy_rows: 3 times 1 rows, one every 2 from 1 on, are not within the "
      "5 rows");
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  expect_misuse([&] { w.copy_rows(-1, 1, 1, 1); }, "copy_rows");
  expect_misuse([&] { w.copy_rows(most, most, most, most); }, "copy_rows");
  expect_misuse([&] { w.copy_rows(0, 1, most, 1); }, "copy_rows");
  expect_misuse([&] { w.copy_rows(0, 1, 1, 2); }, "copy_rows");
  expect_misuse([&] { w.copy_rows(0, 1, 0, 1); }, "copy_rows");
  std::vector<float> row(3);
  expect_misuse([&] { w.row(5, row); }, "WeightMatrix::row: index is 5, there are 5 rows");
  expect_misuse([&] { w.row(-1, row); }, "WeightMatrix::row: index is -1");
  row.resize(2);
  expect_misuse([&] { w.row(0, row); }, "WeightMatrix::row: out has 2 elements, 3 are expected");
}

TEST(WeightMatrix, RefusesShapesThatDoNotFit) {
  const WeightMatrix w(Tensor<float>({5, 3}));
  const Tensor<float> x({2, 3});
  Tensor<float> out({2, 5});
  std::vector<float> bias(4);
  expect_misuse([&] { w.multiply(x, bias, out); },
                "WeightMatrix::multiply: bias has 4 elements, 5 are expected");
  expect_misuse(
      [&] {
        w.multiply(Tensor<float>({2, 4}), {}, out);
      },
      "WeightMatrix::multiply: x has 4 columns, the weights 3");
  expect_misuse(
      [&] {
        w.multiply(Tensor<float>({3, 3}), {}, out);
      },
      "WeightMatrix::multiply: out has shape [2, 5], [3, 5] is expected");
  expect_misuse([&] { w.multiply(Tensor<float>({3}), {}, out); },
                "x has shape [3], rank 2 and contiguous rows are expected");
  Tensor<float> turned({5, 2});
  expect_misuse(
      [&] {
        w.multiply(x, {}, turned.view().permute({1, 0}));
      },
      "out has shape [2, 5], rank 2 and contiguous rows are expected");
}

TEST_F(WeightMatrices, RefuseTensorsThatAreNoMatrices) {
  write_text(path("m.gguf"), testing_support::GgufBuilder().build());
  const Checkpoint none = Checkpoint::open(path("m.gguf"));
  const std::vector<std::byte> bytes(24);
  expect_misuse(
      [&] {
        WeightMatrix(none, {"t", WeightType::kFloat32, {6}, bytes});
      },
      "WeightMatrix: tensor 't' has shape [6], [rows, columns] is expected");
  expect_misuse(
      [&] {
        WeightMatrix(none, {"t", WeightType::kFloat32, {2, 4}, bytes});
      },
      "WeightMatrix: tensor 't' of shape [2, 4] takes 32 bytes as float32, but has 24");
  expect_misuse(
      [&] {
        WeightMatrix(none, {"t", WeightType::kQ4_1, {2, 31}, bytes});
      },
      "row_bytes: columns is 31, q4_1 has blocks of 32");
}

}  // namespace
}  // namespace heed::models
