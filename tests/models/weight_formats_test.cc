// The formats of stored weights: their table, and products of those that are converted first.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "heed/models/weight_matrix.h"
#include "io/gguf_header.h"
#include "io/io_test_util.h"
#include "models/formats/block_formats.h"
#include "models/kernels/weight_kernels.h"
#include "models/weight_product.h"
#include "support/gguf_builder.h"
#include "support/stored_weights.h"
#include "support/tensors.h"

namespace heed::models { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::normal;
using testing_support::same_bits;

// Bytes of a matrix of any type, such that all elements are finite: each byte is below 0x78, that
// of the largest exponents of Float16 numbers and of MXFP4's scales.
class AnyWeights {
 public:
  AnyWeights(WeightType type, std::int64_t rows, std::int64_t columns)
      : shape_{rows, columns},
        type_(type),
        bytes_(static_cast<std::size_t>(rows * row_bytes(type, columns)), '\0') {
    std::mt19937 random(7);
    const std::uint32_t most = type == WeightType::kFloat32 ? 0x44 : 0x78;
    for (char& byte : bytes_) byte = static_cast<char>(random() % most);
  }

  StoredTensor tensor() const { return {"w", type_, shape_, bytes_of(bytes_)}; }
  Tensor<float> floats() const { return to_float(tensor()); }
  WeightRows rows() const {
    return {.type = type_,
            .bytes = bytes_of(bytes_).data(),
            .num_rows = shape_[0],
            .columns = shape_[1],
            .row_bytes = row_bytes(type_, shape_[1])};
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Shape shape_;
  WeightType type_;
  std::string bytes_;
};

WeightRows rows_of_floats(const Tensor<float>& w) {
  return {.bytes = std::as_bytes(w.elements()).data(),
          .num_rows = w.extent(0),
          .columns = w.extent(1),
          .row_bytes = w.extent(1) * std::int64_t{sizeof(float)}};
}

Tensor<float> product_of(const WeightKernels& kernels, const WeightRows& w, FloatView x,
                         std::span<const float> bias) {
  Tensor<float> out({x.extent(0), w.num_rows});
  testing_support::with_groups(
      w, [&](const WeightRows& rows) { multiply(kernels, rows, x, bias, out); });
  return out;
}

class WeightFormats : public testing::TestWithParam<std::size_t> {
 protected:
  static WeightType type() { return static_cast<WeightType>(GetParam()); }
  static const WeightFormat& format() { return format_of(type()); }

  // The product is that of the converted matrix, also of some of its rows.
  static void expect_product_of_floats(std::int64_t rows, std::int64_t columns) {
    const AnyWeights weights(type(), rows, columns);
    const Tensor<float> floats = weights.floats();
    const Tensor<float> bias = normal<float>({rows}, 4);
    for (const std::int64_t n : {1, 2, 3, 4, 5, 12, 13, 14, 40, 530}) {
      const bool has_block_sums = format().multiplies_stored && format().block_elements > 1;
      if (has_block_sums && n <= kFewInputRows) continue;
      const Tensor<float> x = normal<float>({n, columns}, 3);
      for (const WeightKernels* kernels : supported_weight_kernels()) {
        const auto found = product_of(*kernels, weights.rows(), x, bias.elements());
        const auto expected = product_of(*kernels, rows_of_floats(floats), x, bias.elements());
        EXPECT_TRUE(same_bits(found, expected)) << kernels->name << ' ' << rows << ' ' << n;
      }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Of, WeightFormats, testing::Range(std::size_t{0}, kWeightFormats.size()),
                         [](const auto& test) {
                           return std::string(kWeightFormats[test.param].name);
                         });

TEST_P(WeightFormats, HaveProductsOfTheConvertedMatrix) {
  const std::int64_t block = format().block_elements;
  for (const std::int64_t rows : {1, 2, 7, 17, 49, 101}) expect_product_of_floats(rows, block);
  expect_product_of_floats(50, 3 * block);
  expect_product_of_floats(3, 5 * block);
}

// Every byte has every value: elements may be infinite or no numbers.
TEST_P(WeightFormats, AreConvertedByEveryInstructionSetAsByPlainLoops) {
  const std::int64_t count = 512 * format().block_elements;
  std::vector<std::byte> bytes(static_cast<std::size_t>(512 * format().block_bytes));
  std::mt19937 random(3);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random() & 255U);
  std::vector<float> expected(static_cast<std::size_t>(count));
  decode(type(), bytes.data(), count, expected.data());
  for (const WeightKernels* kernels : supported_weight_kernels()) {
    std::vector<float> found(expected.size());
    kernels->decode(type(), bytes.data(), count, found.data());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const bool is_number = !std::isnan(expected[i]);
      ASSERT_EQ(!std::isnan(found[i]), is_number) << kernels->name << ' ' << i;
      if (!is_number) continue;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(expected[i]))
          << kernels->name << ' ' << i;
    }
  }
}

TEST_P(WeightFormats, HaveTheSameBitsForAnyThreadsAndInputsBeside) {
  const std::int64_t columns = 2 * std::max<std::int64_t>(format().block_elements, 32);
  const AnyWeights weights(type(), 600, columns);
  const Tensor<float> x = normal<float>({5, columns}, 3);
  const WeightKernels& kernels = weight_kernels_in_use();
  const auto expected = product_of(kernels, weights.rows(), x, {});
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    EXPECT_TRUE(same_bits(product_of(kernels, weights.rows(), x, {}), expected));
  }
  set_num_threads(0);
  for (std::int64_t i = 0; i < 5; ++i) {
    const auto alone = product_of(kernels, weights.rows(), x.view().slice(0, i, i + 1), {});
    EXPECT_TRUE(same_bits(alone, to_tensor(FloatView(expected).slice(0, i, i + 1))));
  }
}

class WeightFormatFiles : public IoTest {};

TEST_F(WeightFormatFiles, OpenAsMatricesOfEveryType) {
  for (std::size_t i = 0; i < kWeightFormats.size(); ++i) {
    const WeightFormat& format = kWeightFormats[i];
    if (!format.ggml_number) continue;
    const auto type = static_cast<WeightType>(i);
    const AnyWeights weights(type, 5, 2 * format.block_elements);
    testing_support::GgufBuilder builder;
    builder.add_tensor("w", {static_cast<std::uint64_t>(2 * format.block_elements), 5},
                       *format.ggml_number, weights.bytes());
    write_text(path("m.gguf"), builder.build());
    const Checkpoint checkpoint = Checkpoint::open(path("m.gguf"));
    const WeightMatrix w(checkpoint, checkpoint.tensor("w"));
    EXPECT_EQ(w.type(), type);
    EXPECT_EQ(w.num_bytes(), 10 * format.block_bytes);
    EXPECT_TRUE(same_bits(w.to_float(), weights.floats())) << format.name;
    const auto floats = weights.floats();
    const WeightMatrix part = w.slice_rows(1, 4);
    EXPECT_TRUE(same_bits(part.to_float(), to_tensor(floats.view().slice(0, 1, 4))));
    std::vector<float> row(static_cast<std::size_t>(w.columns()));
    part.row(2, row);
    EXPECT_TRUE(std::equal(row.begin(), row.end(), floats.data() + 3 * w.columns()));
    // Rows 1 and 3, of the whole and of the part.
    Tensor<float> odd({2, w.columns()});
    std::copy_n(floats.data() + w.columns(), w.columns(), odd.data());
    std::copy_n(floats.data() + 3 * w.columns(), w.columns(), odd.data() + w.columns());
    EXPECT_TRUE(same_bits(w.copy_rows(1, 2, 2, 1).to_float(), odd)) << format.name;
    EXPECT_TRUE(same_bits(part.copy_rows(0, 2, 2, 1).to_float(), odd)) << format.name;
    EXPECT_TRUE(same_bits(w.copy_rows(1, 3, 1, 3).to_float(), part.to_float())) << format.name;
    EXPECT_EQ(w.copy_rows(1, 2, 2, 1).type(), type);
  }
}

TEST_F(WeightFormatFiles, RefuseRowsAndBytesThatAreNoBlocks) {
  for (const WeightFormat& format : kWeightFormats) {
    if (format.block_elements == 1) continue;
    const auto elements = static_cast<std::uint64_t>(format.block_elements);
    const std::string block(static_cast<std::size_t>(format.block_bytes), '\1');
    const std::string name = io::ggml_type_name(*format.ggml_number);
    const auto open = [&](std::uint64_t columns, const std::string& bytes) {
      testing_support::GgufBuilder builder;
      builder.add_tensor("w", {columns, 1}, *format.ggml_number, bytes);
      write_text(path("m.gguf"), builder.build());
      Checkpoint::open(path("m.gguf"));
    };
    EXPECT_THAT([&] { open(elements + 1, block); },
                ThrowsMessage<FormatError>(
                    HasSubstr(fmt::format("tensor 'w' has rows of {} elements, {} has blocks of {}",
                                          elements + 1, name, elements))));
    EXPECT_THAT([&] { open(64 * elements, block); },
                ThrowsMessage<FormatError>(HasSubstr("tensor 'w' takes the bytes 0 to")));
  }
}

TEST_F(WeightFormatFiles, NameTheTypesThatAreNotRead) {
  for (const io::GgmlType& type : io::kGgmlTypes) {
    const bool is_read =
        std::any_of(kWeightFormats.begin(), kWeightFormats.end(),
                    [&](const WeightFormat& format) { return format.ggml_number == type.number; });
    if (is_read) continue;
    testing_support::GgufBuilder builder;
    builder.add_tensor("w", {static_cast<std::uint64_t>(type.block_elements)}, type.number,
                       std::string(static_cast<std::size_t>(type.block_bytes), '\1'));
    write_text(path("m.gguf"), builder.build());
    const Checkpoint checkpoint = Checkpoint::open(path("m.gguf"));
    EXPECT_THAT([&] { checkpoint.tensor("w"); },
                ThrowsMessage<FormatError>(
                    HasSubstr(fmt::format("tensor 'w' is of type {}; read are", type.name))));
  }
}

}  // namespace
}  // namespace heed::models
