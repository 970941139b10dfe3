// tests/python/dump_random_streams.py writes the weights.
#include "heed/nn/init.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <utility>
#include <variant>
#include <vector>

#include "core/stream_fixture.h"
#include "heed/io/safetensors.h"
#include "support/places.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::Refuses;
using testing_support::same_bits;
using testing_support::Stream;

TEST(Init, DrawsPyTorchsLayersInOrder) {
  Stream<float> stream("torch_init_float");
  TorchGenerator generator(0);
  stream.expect_near(embedding_weight(generator, 4, 4), 1e-6);
  for (int layer = 0; layer < 4; ++layer) {
    const LinearParameters<float> linear = linear_init(generator, 4, 4, false);
    EXPECT_TRUE(linear.bias.empty());
    stream.expect_equal(linear.weight);
  }
  const LinearParameters<float> square = linear_init(generator, 64, 64);
  stream.expect_equal(square.weight);
  stream.expect_equal(square.bias);
  const LinearParameters<float> narrowing = linear_init(generator, 7, 3);
  EXPECT_EQ(narrowing.weight.shape(), (Shape{3, 7}));
  EXPECT_EQ(narrowing.bias.shape(), (Shape{3}));
  stream.expect_equal(narrowing.weight);
  stream.expect_equal(narrowing.bias);
}

TEST(Init, DrawsPyTorchsLayersInDouble) {
  Stream<double> stream("torch_init_double");
  TorchGenerator generator(0);
  const std::vector<std::pair<std::int64_t, std::int64_t>> sizes = {{5, 3}, {64, 8}, {7, 2}};
  for (const auto& size : sizes) {
    SCOPED_TRACE(size.first);
    const LinearParameters<double> linear = linear_init<double>(generator, size.first, size.second);
    stream.expect_equal(linear.weight);
    stream.expect_equal(linear.bias);
  }
}

TEST(Init, IsThatOfALayerInAFileOfPyTorch) {
  const Safetensors file = read_safetensors(std::filesystem::path(testing_support::test_data()) /
                                            "safetensors" / "linear.safetensors");
  set_seed(0);
  const auto expected = linear_init<float>(default_generator(), 3, 2);
  EXPECT_TRUE(same_bits(std::get<Tensor<float>>(file.tensors.at("weight")), expected.weight));
  EXPECT_TRUE(same_bits(std::get<Tensor<float>>(file.tensors.at("bias")), expected.bias));
}

TEST(Init, AllowsEmptyLayers) {
  TorchGenerator generator(0);
  const LinearParameters<float> linear = linear_init(generator, 0, 3);
  EXPECT_EQ(linear.weight.shape(), (Shape{3, 0}));
  EXPECT_THAT(linear.bias.elements(), testing::ElementsAre(0, 0, 0));
}

TEST(Init, ChecksItsArguments) {
  TorchGenerator generator;
  EXPECT_THAT([&] { linear_init(generator, 4, -1); }, Refuses("out_features", "-1"));
  EXPECT_THAT([&] { embedding_weight(generator, -2, 4); }, Refuses("num_embeddings", "-2"));
}

}  // namespace
}  // namespace heed
