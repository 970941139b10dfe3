// tests/python/dump_random_streams.py writes the streams with the same calls in the same order.
#include "heed/core/random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "core/stream_fixture.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::elements_of;
using testing_support::Refuses;
using testing_support::Stream;

// PyTorch's vectorised float logarithm, sine and cosine differ from the C library's by an ulp.
constexpr double kFloatTolerance = 1e-6;
constexpr double kDoubleTolerance = 1e-14;

constexpr std::int64_t kMin64 = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax64 = std::numeric_limits<std::int64_t>::max();

const std::vector<std::pair<std::int64_t, std::int64_t>>& randint_ranges() {
  constexpr std::int64_t kOne = 1;
  static const std::vector<std::pair<std::int64_t, std::int64_t>> ranges = {
      {0, 1},
      {0, 2},
      {-3, 10},
      {0, (kOne << 28) - 1},
      {0, kOne << 28},
      {0, kOne << 31},
      {0, (kOne << 32) - 1},
      {0, kOne << 32},
      {0, (kOne << 32) + 1},
      {-(kOne << 40), kOne << 40},
      {0, kMax64},
      {kMin64, kMax64},
  };
  return ranges;
}

template <class T>
void expect_torch_uniforms(Stream<T> stream) {
  TorchGenerator generator(0);
  stream.expect_equal(generator.rand<T>({5000}));
  Tensor<T> shifted({1000});
  generator.uniform(shifted, -0.37, 0.81);
  stream.expect_equal(shifted);
}

TEST(TorchGenerator, DrawsPyTorchsUniforms) {
  expect_torch_uniforms(Stream<float>("torch_uniform_float"));
  expect_torch_uniforms(Stream<double>("torch_uniform_double"));
}

template <class T>
void expect_torch_normals(Stream<T> stream, double tolerance) {
  TorchGenerator generator(1);
  for (const std::int64_t size : {1, 2, 15, 16, 17, 31, 32, 33, 100, 1000, 4099}) {
    SCOPED_TRACE(size);
    stream.expect_near(generator.randn<T>({size}), tolerance);
  }
  for (const std::int64_t size : {5, 40}) {
    Tensor<T> scaled({size});
    generator.normal(scaled, 1.5, 0.25);
    stream.expect_near(scaled, tolerance);
  }
  stream.expect_equal(generator.rand<T>({4}));
}

TEST(TorchGenerator, DrawsPyTorchsNormals) {
  expect_torch_normals(Stream<float>("torch_normal_float"), kFloatTolerance);
  expect_torch_normals(Stream<double>("torch_normal_double"), kDoubleTolerance);
}

TEST(TorchGenerator, FillsViewsInMemoryOrder) {
  Stream<float> stream("torch_strided");
  TorchGenerator generator(2);
  Tensor<float> transposed({5, 7});
  Tensor<float> permuted({2, 3, 4});
  Tensor<float> wide({4, 9});
  const Strides every_other = {9, 2};
  const std::vector<TensorView<float>> views = {
      transposed.view().permute({1, 0}), permuted.view().permute({2, 0, 1}),
      TensorView<float>(wide.data(), {4, 5}, every_other), wide.view().slice(0, 1, 3)};
  for (const TensorView<float>& view : views) {
    generator.uniform(view);
    stream.expect_equal(TensorView<const float>(view));
  }
  for (const TensorView<float>& view : views) {
    generator.normal(view);
    stream.expect_near(TensorView<const float>(view), kFloatTolerance);
  }
}

TEST(TorchGenerator, KeepsTheSecondNormalBetweenCalls) {
  Stream<double> stream("torch_mixed");
  TorchGenerator generator(3);
  stream.expect_near(generator.randn({3}), kFloatTolerance);
  stream.expect_equal(generator.rand({2}));
  stream.expect_near(generator.randn({16}), kFloatTolerance);
  stream.expect_near(generator.randn<double>({2}), kDoubleTolerance);
  stream.expect_equal(generator.randint(0, 10, {3}));
  stream.expect_near(generator.randn({20}), kFloatTolerance);
  stream.expect_near(generator.randn({1}), kFloatTolerance);
  stream.expect_near(generator.randn({7}), kFloatTolerance);
  generator.manual_seed((std::uint64_t{1} << 40) + 7);
  stream.expect_near(generator.randn<double>({4}), kDoubleTolerance);
  stream.expect_equal(generator.rand({3}));
  stream.expect_near(generator.randn<double>({1}), kDoubleTolerance);
}

TEST(TorchGenerator, DrawsPyTorchsIntegers) {
  Stream<std::int64_t> stream("torch_randint");
  TorchGenerator generator(4);
  for (const auto& range : randint_ranges()) {
    SCOPED_TRACE(range.second);
    stream.expect_equal(generator.randint(range.first, range.second, {8, 5}));
  }
}

TEST(TorchGenerator, DrawsPyTorchsPermutations) {
  Stream<std::int64_t> stream("torch_randperm");
  TorchGenerator generator(5);
  for (const std::int64_t n : {0, 1, 2, 1000}) stream.expect_equal(generator.randperm(n));
  const Tensor<std::int64_t> permutation = generator.randperm(70000);
  stream.expect_equal(permutation.view().slice(0, 0, 500));
  std::int64_t checksum = 0;
  for (std::int64_t i = 0; i < 70000; ++i) checksum += i * permutation(i);
  stream.expect_equal(Tensor<std::int64_t>({1}, {checksum}));
  stream.expect_equal(generator.randint(0, std::int64_t{1} << 40, {1}));
}

TEST(TorchGenerator, CopiesContinueAlike) {
  TorchGenerator generator(8);
  generator.randn({3});
  TorchGenerator copy = generator;
  EXPECT_THAT(elements_of(copy.randn({5})),
              testing::ElementsAreArray(elements_of(generator.randn({5}))));
}

TEST(TorchGenerator, NeverReachesTheUpperBound) {
  // Between neighbouring floats half of the draws would round up to the bound.
  Tensor<float> out({1000});
  TorchGenerator(0).uniform(out, 1, std::nextafter(1.0F, 2.0F));
  EXPECT_THAT(out.elements(), testing::Each(1.0F));
}

TEST(TorchGenerator, LeavesTheStreamAloneWhenThereIsNothingToFill) {
  TorchGenerator generator(0);
  generator.randn({0, 3});
  generator.rand({2, 0});
  generator.randint(0, 5, {0});
  EXPECT_EQ(generator.rand({1})(0), TorchGenerator(0).rand({1})(0));
}

TEST(TorchGenerator, ChecksItsArguments) {
  TorchGenerator generator;
  Tensor<float> out({3});
  constexpr double kInf = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT([&] { generator.uniform(out, 1, 0); }, Refuses("to", "0"));
  EXPECT_THROW(generator.uniform(out, 0, kInf), InvalidArgument);
  EXPECT_THROW(generator.uniform(out, kNan, 1), InvalidArgument);
  EXPECT_THROW(generator.uniform(out, -3e38, 3e38), InvalidArgument);
  EXPECT_THAT([&] { generator.normal(out, 0, -1); }, Refuses("std", "-1"));
  EXPECT_THROW(generator.normal(out, 0, kNan), InvalidArgument);
  EXPECT_THAT(
      [&] {
        generator.normal(out.view().broadcast_to({2, 3}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("[2, 3] repeats elements along dimension 0")));
  EXPECT_THAT([&] { generator.randint(5, 5, {2}); }, Refuses("high", "5"));
  EXPECT_THAT([&] { generator.randperm(-1); }, Refuses("n", "-1"));
  EXPECT_THAT(out.elements(), testing::Each(0.0F));
  EXPECT_EQ(generator.rand({1})(0), TorchGenerator(0).rand({1})(0));
}

TEST(SetSeed, RestartsTheDefaultGenerator) {
  set_seed(3);
  const Tensor<float> first = default_generator().randn({5});
  set_seed(3);
  const Tensor<float> second = default_generator().randn({5});
  EXPECT_THAT(second.elements(), testing::ElementsAreArray(first.elements()));
  EXPECT_THAT(elements_of(TorchGenerator(3).randn({5})),
              testing::ElementsAreArray(first.elements()));
}

TEST(NumpyRandomState, DrawsNumpysNormalsAndUniforms) {
  Stream<double> stream("numpy_normal");
  NumpyRandomState state(42);
  stream.expect_near(state.randn({1001}), kDoubleTolerance);
  stream.expect_equal(state.rand({1000}));
  stream.expect_near(state.randn({30, 50}), kDoubleTolerance);
}

TEST(NumpyRandomState, DrawsNumpysIntegers) {
  Stream<std::int64_t> stream("numpy_randint");
  NumpyRandomState state(7);
  for (const auto& range : randint_ranges()) {
    SCOPED_TRACE(range.second);
    stream.expect_equal(state.randint(range.first, range.second, {40}));
  }
}

TEST(NumpyRandomState, ChecksItsArguments) {
  EXPECT_THAT([] { NumpyRandomState(std::uint64_t{1} << 32); }, Refuses("seed", "4294967296"));
  EXPECT_THAT([] { NumpyRandomState(0).randint(6, 5, {2}); }, Refuses("high", "5"));
}

TEST(TorchGeneratorState, GoesOnWhereItWasTaken) {
  TorchGenerator generator(5);
  generator.randn({3});  // an odd number, so that one normal number is kept
  const Tensor<std::uint64_t> state = generator.state();
  const Tensor<float> expected = generator.randn({40});
  const Tensor<float> one = generator.randn({1});
  TorchGenerator other(6);
  other.set_state(state);
  EXPECT_TRUE(testing_support::same_bits(other.randn({40}), expected));
  EXPECT_TRUE(testing_support::same_bits(other.randn({1}), one));
}

TEST(TorchGeneratorState, AnythingElseIsRefused) {
  TorchGenerator generator(5);
  const Tensor<std::uint64_t> state = generator.state();
  const auto refuses = [&](std::int64_t index, std::uint64_t word) {
    Tensor<std::uint64_t> wrong = state;
    wrong(index) = word;
    EXPECT_THAT([&] { generator.set_state(wrong); },
                testing::ThrowsMessage<InvalidArgument>(testing::HasSubstr("not the state")));
  };
  refuses(0, std::uint64_t{1} << 32);
  refuses(state.num_elements() - 2, 2);
  refuses(624, 625);  // the index of the next word
  EXPECT_THROW(generator.set_state(Tensor<std::uint64_t>({3})), InvalidArgument);
  EXPECT_TRUE(testing_support::same_bits(generator.state(), state));
}

}  // namespace
}  // namespace heed
