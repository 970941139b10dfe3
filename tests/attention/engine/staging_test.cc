// Tensors of other types and layouts are converted to float copies.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "attention/plan/fused.h"
#include "attention/request/call.h"
#include "heed/core/parallel.h"
#include "support/kernel_tables.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::converted;
using testing_support::normal;
using testing_support::same_bits;

class StagedTensors : public testing::TestWithParam<const kernels::KernelTable*> {
 protected:
  const kernels::KernelTable& table() const { return *GetParam(); }

  template <class T>
  Tensor<T> attend(TensorView<const T> query, TensorView<const T> key, TensorView<const T> value,
                   const AttentionOptions& options, bool* staged = nullptr) const {
    const AttentionShapes shapes = check_shapes("attention", query, key, value);
    const auto request = check_request("attention", shapes, options);
    Tensor<T> out({query.extent(0), query.extent(1), query.extent(2), value.extent(3)});
    const auto schedule = engine::make_schedule(table(), request, Pass::kForward, num_threads());
    if (staged != nullptr) *staged = schedule.stages_key && schedule.stages_value;
    const ForwardCall<float> call{call_of(request, query, key, value), rows_of(out.view()), {}};
    FusedPass<float>(table(), schedule, Pass::kForward).forward({&call, 1});
    return out;
  }

  template <class T>
  void expect_float_result_rounded(const AttentionOptions& options, std::int64_t head_dim,
                                   std::int64_t value_dim) const {
    const auto query = converted<T>(normal<float>({2, 4, 75, head_dim}, 1));
    const auto key = converted<T>(normal<float>({2, 2, 260, head_dim}, 2));
    const auto value = converted<T>(normal<float>({2, 2, 260, value_dim}, 3));
    const auto found = attend<T>(query, key, value, options);
    const auto expected = attend<float>(converted<float>(query), converted<float>(key),
                                        converted<float>(value), options);
    EXPECT_TRUE(same_bits(found, converted<T>(expected))) << head_dim << " " << value_dim;
  }
};
INSTANTIATE_TEST_SUITE_P(Fused, StagedTensors,
                         testing::ValuesIn(testing_support::kernels_of_numbers()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST_P(StagedTensors, HalfPrecisionIsTheFloatResultRounded) {
  AttentionOptions modified{.mask = causal_bottom_right()};
  modified.score_mod = [](auto score, int, int, int q, int k) {
    return score - 0.01F * static_cast<float>(q - k);
  };
  for (AttentionOptions options : {AttentionOptions{}, modified}) {
    options.precision = Precision::kExact;
    for (const std::int64_t head_dim : {1, 16, 33, 200}) {
      for (const std::int64_t value_dim : {3, 64}) {
        expect_float_result_rounded<Float16>(options, head_dim, value_dim);
        expect_float_result_rounded<BFloat16>(options, head_dim, value_dim);
      }
    }
  }
}

TEST_P(StagedTensors, RowsFarApartChangeNoBit) {
  const auto query = normal<float>({1, 4, 300, 16}, 1);
  const auto key = normal<float>({1, 4, 300, 16}, 2);
  const auto value = normal<float>({1, 4, 300, 16}, 3);
  // Memory [length, heads · 256], of which 16 columns of every head are used.
  const auto spread = [](const Tensor<float>& x) {
    Tensor<float> memory({1, 300, 4, 256});
    const auto view = memory.view().permute({0, 2, 1, 3}).slice(3, 0, 16);
    for (std::int64_t h = 0; h < 4; ++h)
      for (std::int64_t t = 0; t < 300; ++t)
        for (std::int64_t d = 0; d < 16; ++d) view(0, h, t, d) = x(0, h, t, d);
    return memory;
  };
  const auto far_key = spread(key);
  const auto far_value = spread(value);
  const auto near = [](const Tensor<float>& memory) {
    return memory.view().permute({0, 2, 1, 3}).slice(3, 0, 16);
  };
  bool staged = false;
  const auto found = attend<float>(query, near(far_key), near(far_value),
                                   {.mask = sliding_window(90, 4)}, &staged);
  EXPECT_TRUE(staged);
  EXPECT_TRUE(
      same_bits(found, attend<float>(query, key, value, {.mask = sliding_window(90, 4)}, &staged)));
  EXPECT_FALSE(staged);
}

// Where tiles are copied, more panels share each copy, as many as fit in 2 MiB over all threads.
// Not for weights, of which panels keep more, and not for quantised keys, which are never copied.
TEST_P(StagedTensors, MorePanelsShareACopiedTile) {
  const auto request_of = [](const auto& of, std::int64_t dim,
                             const AttentionOptions& options = {}) {
    const auto one = converted<std::decay_t<decltype(of)>>(normal<float>({1, 8, 2000, dim}, 1));
    return check_request("attention", check_shapes("attention", one.view(), one.view(), one.view()),
                         options);
  };
  const auto panels_of = [&](const auto& request, Pass pass = Pass::kForward, int threads = 1) {
    return engine::make_schedule(table(), request, pass, threads).panels_per_block;
  };
  const auto in_place = request_of(float{}, 16);
  EXPECT_EQ(panels_of(in_place), 8);
  EXPECT_EQ(panels_of(in_place, Pass::kBackward), 4);
  const auto copied = request_of(Float16{}, 16);
  EXPECT_EQ(panels_of(copied), 32);
  EXPECT_EQ(panels_of(copied, Pass::kBackward), 12);
  EXPECT_EQ(panels_of(copied, Pass::kWeights), 8);

  const auto large = request_of(Float16{}, 200);
  const std::int64_t bytes_of_panel = 4 * 3 * 200 * kernels::kPanelVectors * table().lanes;
  for (const int threads : {1, 2}) {
    EXPECT_EQ(panels_of(large, Pass::kForward, threads),
              std::clamp<std::int64_t>((2 << 20) / (threads * bytes_of_panel), 8, 32));
  }
  EXPECT_EQ(panels_of(large, Pass::kBackward, 64),
            panels_of(request_of(float{}, 200), Pass::kBackward, 64));

  auto quantised = request_of(float{}, 16, {.softcap = 5});
  quantised.has_key_source = true;
  quantised.key_storage = quantised.value_storage = KvStorage::kInt8;
  EXPECT_EQ(panels_of(quantised), 8);
  quantised.value_storage = KvStorage::kFloat16;
  EXPECT_EQ(panels_of(quantised), 32);
}

// Checks every one of the 65536 numbers; NaN stays NaN.
TEST_P(StagedTensors, WidensEveryNumberExactly) {
  std::vector<std::uint16_t> bits(65536);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  std::vector<float> found(bits.size());
  const auto* source = reinterpret_cast<const std::byte*>(bits.data());
  const auto expect_equal = [&](auto from_bits) {
    for (std::size_t i = 0; i < bits.size(); ++i) {
      const float expected = from_bits(bits[i]);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(found[i])) << i;
      } else {
        EXPECT_EQ(std::bit_cast<std::uint32_t>(found[i]), std::bit_cast<std::uint32_t>(expected))
            << i;
      }
    }
  };
  table().widen(DataType::kFloat16, source, 65536, found.data());
  expect_equal([](std::uint16_t word) { return static_cast<float>(Float16::from_bits(word)); });
  table().widen(DataType::kBFloat16, source, 65536, found.data());
  expect_equal([](std::uint16_t word) { return static_cast<float>(BFloat16::from_bits(word)); });
}

// Checks every 16-bit number, the midpoints, and their neighbours.
TEST_P(StagedTensors, NarrowsToTheNearest) {
  std::vector<float> numbers;
  for (std::uint32_t high = 0; high < 65536; ++high) {
    for (const std::uint32_t low :
         {0x0000U, 0x0001U, 0x0fffU, 0x1000U, 0x1001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      numbers.push_back(std::bit_cast<float>(high << 16 | low));
    }
  }
  std::vector<std::uint16_t> found(numbers.size());
  const auto count = static_cast<std::int64_t>(numbers.size());
  auto* target = reinterpret_cast<std::byte*>(found.data());
  table().narrow(DataType::kFloat16, numbers.data(), count, target);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isnan(numbers[i])) continue;
    ASSERT_EQ(found[i], Float16(numbers[i]).bits()) << numbers[i];
  }
  table().narrow(DataType::kBFloat16, numbers.data(), count, target);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isnan(numbers[i])) continue;
    ASSERT_EQ(found[i], BFloat16(numbers[i]).bits()) << numbers[i];
  }
}

}  // namespace
}  // namespace heed
