#include "heed/nn/embedding_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heed/attention/position.h"
#include "heed/core/random.h"
#include "heed/nn/init.h"
#include "support/gradcheck.h"
#include "support/refusal.h"

namespace heed::nn { namespace {

using testing_support::Refuses;
using testing_support::same_bits;

TEST(EmbeddingLayers, HaveTheParametersOfTheirTextbook) {
  EXPECT_EQ(TokenEmbedding<>(4, 4).num_parameters(), 16);
  EXPECT_EQ(SinusoidalPositionalEncoding<>(512, 1000).num_parameters(), 0);
  EXPECT_EQ(LearnedPositionalEncoding<>(512, 1000).num_parameters(), 512000);
}

TEST(EmbeddingLayers, NameAndPrintThemselves) {
  const TokenEmbedding<> embedding(4, 3);
  EXPECT_EQ(embedding.state_dict().front().name, "embedding.weight");
  const SinusoidalPositionalEncoding<> sinusoidal(4);
  EXPECT_EQ(sinusoidal.state_dict().front().name, "pe");
  EXPECT_EQ(std::get<FloatView>(sinusoidal.state_dict().front().value).shape(),
            (Shape{1, 2048, 4}));
  EXPECT_EQ(sinusoidal.summary(), "SinusoidalPositionalEncoding()");
  EXPECT_EQ(SinusoidalPositionalEncoding<>(4, 5000, 0.1).summary(),
            "SinusoidalPositionalEncoding(\n  (dropout): Dropout(p=0.1, inplace=False)\n)");
  EXPECT_EQ(LearnedPositionalEncoding<>(4).summary(),
            "LearnedPositionalEncoding(\n  (position_embeddings): Embedding(512, 4)\n  (dropout): "
            "Dropout(p=0.1, inplace=False)\n)");
}

TEST(EmbeddingLayers, LearnedPositionsAreDrawnAfterTheEmbeddingsOwnDraw) {
  set_seed(0);
  const LearnedPositionalEncoding<> layer(6, 5);
  TorchGenerator generator(0);
  embedding_weight(generator, 5, 6);
  EXPECT_TRUE(
      same_bits(to_tensor(layer.parameters().front().value()), learned_encoding(generator, 5, 6)));
}

TEST(EmbeddingLayers, AddPositions) {
  SinusoidalPositionalEncoding<> layer(4, 7);
  const Tensor<float> x = testing_support::normal<float>({2, 3, 4}, 1);
  EXPECT_TRUE(same_bits(layer.forward(Variable<float>(x)).value(),
                        add_positions(x, sinusoidal_encoding(7, 4))));
}

TEST(EmbeddingLayers, HaveGradients) {
  LearnedPositionalEncoding<double> layer(4, 5, 0);
  const Variable<double> x = testing_support::normal_variable({2, 3, 4}, 1);
  EXPECT_LE(testing_support::gradient_error({x, layer.parameters().front()},
                                            [&] { return layer.forward(x); }),
            testing_support::kGradientTolerance);
}

TEST(EmbeddingLayers, RefuseLongerInputs) {
  LearnedPositionalEncoding<> learned(4, 2);
  SinusoidalPositionalEncoding<> sinusoidal(4, 2);
  const Variable<float> x(Tensor<float>({1, 3, 4}));
  EXPECT_THAT([&] { learned.forward(x); }, Refuses("max_len", "2"));
  EXPECT_THAT([&] { sinusoidal.forward(x); }, Refuses("max_len", "2"));
}

}  // namespace
}  // namespace heed::nn
