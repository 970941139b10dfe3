#include "heed/nn/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "heed/core/random.h"
#include "heed/nn/init.h"
#include "support/gradcheck.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed::nn { namespace {

using testing::Each;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::elements_of;
using testing_support::gradient_error;
using testing_support::kGradientTolerance;
using testing_support::normal_variable;
using testing_support::Refuses;
using testing_support::same_bits;

TEST(Layers, DrawFromTheDefaultGeneratorInOrder) {
  set_seed(0);
  const Embedding<> embedding(5, 3);
  const Linear<> layer(3, 4);
  TorchGenerator generator(0);
  EXPECT_TRUE(same_bits(to_tensor(embedding.weight().value()), embedding_weight(generator, 5, 3)));
  const auto drawn = linear_init(generator, 3, 4);
  EXPECT_TRUE(same_bits(to_tensor(layer.weight().value()), drawn.weight));
  EXPECT_TRUE(same_bits(to_tensor(layer.bias().value()), drawn.bias));
}

TEST(Layers, PrintThemselvesAsPyTorchDoes) {
  Sequential<> model;
  model.append<Linear<>>(3, 4);
  model.append<ReLU<>>();
  model.append<LayerNorm<>>(4);
  model.append<LayerNorm<>>(Shape{2, 4}, 0.5);
  model.append<Dropout<>>(0.0);
  model.append<Sequential<>>();
  EXPECT_EQ(model.summary(),
            "Sequential(\n"
            "  (0): Linear(in_features=3, out_features=4, bias=True)\n"
            "  (1): ReLU()\n"
            "  (2): LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)\n"
            "  (3): LayerNorm((2, 4), eps=0.5, elementwise_affine=True, bias=True)\n"
            "  (4): Dropout(p=0.0, inplace=False)\n"
            "  (5): Sequential()\n"
            ")");
  EXPECT_EQ(Embedding<>(5, 3, -1).summary(), "Embedding(5, 3, padding_idx=4)");
}

TEST(Layers, HaveGradients) {
  Sequential<double> model;
  model.append<Linear<double>>(3, 5);
  model.append<Tanh<double>>();
  model.append<LayerNorm<double>>(5);
  model.append<Linear<double>>(5, 2, false);
  const Variable<double> x = normal_variable({2, 7, 3}, 1);
  auto inputs = model.parameters();
  inputs.push_back(x);
  EXPECT_LE(gradient_error(inputs, [&] { return model.forward(x); }), kGradientTolerance);
}

TEST(Layers, RefuseMisuse) {
  EXPECT_THAT([] { Linear<>(-1, 2); }, ThrowsMessage<InvalidArgument>(HasSubstr("in_features")));
  EXPECT_THAT([] { Embedding<>(3, 2, 3); }, Refuses("padding_idx", "3"));
  EXPECT_THAT([] { Dropout<>(1.5); }, Refuses("p", "1.5"));
  Linear<> layer(3, 2);
  EXPECT_THAT(
      [&] {
        layer.forward(Tensor<float>({2, 4}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("their last extents differ")));
  Embedding<> embedding(3, 2);
  EXPECT_THAT([&] { embedding.forward(Tensor<std::int64_t>({1}, {3})); },
              ThrowsMessage<InvalidArgument>(HasSubstr("token id 3 is not in the table of 3")));
}

TEST(DropoutLayer, DropsTheSaidShareAndScalesTheRest) {
  set_seed(3);
  Dropout<> layer(0.25);
  const Variable<float> ones(Tensor<float>({100000}, std::vector<float>(100000, 1)));
  const Variable<float> y = layer.forward(ones);
  const auto elements = y.value().elements();
  const auto dropped = std::count(elements.begin(), elements.end(), 0.0F);
  // Four standard deviations: 4 · √(100000 · 0.25 · 0.75) = 548.
  EXPECT_NEAR(static_cast<double>(dropped), 25000, 548);
  const auto is_dropped_or_scaled = testing::AnyOf(0.0F, 1 / 0.75F);
  EXPECT_THAT(elements, Each(is_dropped_or_scaled));
}

TEST(DropoutLayer, IsReproducedBySetSeedAndDiffersFromCallToCall) {
  Dropout<> layer(0.5);
  const Variable<float> ones(Tensor<float>({64}, std::vector<float>(64, 1)));
  set_seed(5);
  const Variable<float> first = layer.forward(ones);
  const Variable<float> second = layer.forward(ones);
  set_seed(5);
  const Variable<float> again = layer.forward(ones);
  EXPECT_TRUE(same_bits(to_tensor(first.value()), to_tensor(again.value())));
  EXPECT_FALSE(same_bits(to_tensor(first.value()), to_tensor(second.value())));
}

TEST(DropoutLayer, DoesNothingInEvaluation) {
  Dropout<> layer(0.5);
  layer.eval();
  const Variable<float> x(Tensor<float>({3}, {1, 2, 3}));
  EXPECT_THAT(elements_of(layer.forward(x).value()), testing::ElementsAre(1, 2, 3));
}

TEST(DropoutLayer, WithoutProbabilityDrawsNothing) {
  set_seed(0);
  Dropout<>(0.0).forward(Variable<float>(Tensor<float>({3})));
  EXPECT_EQ(default_generator().rand({1})(0), TorchGenerator(0).rand({1})(0));
}

}  // namespace
}  // namespace heed::nn
