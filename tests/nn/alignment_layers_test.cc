#include "heed/nn/alignment_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/gradcheck.h"
#include "support/refusal.h"

namespace heed::nn { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::gradient_error;
using testing_support::kGradientTolerance;
using testing_support::max_difference;
using testing_support::normal_variable;
using testing_support::Refuses;

TEST(AlignmentLayers, HaveTheParametersOfTheirTextbook) {
  EXPECT_EQ(AdditiveAttention<>(512, 512, 256).num_parameters(), 262400);
  EXPECT_EQ(MultiplicativeAttention<>(512, 512, LuongScore::kDot).num_parameters(), 0);
  EXPECT_EQ(MultiplicativeAttention<>(512, 512).num_parameters(), 262144);
  EXPECT_EQ(MultiplicativeAttention<>(512, 512, LuongScore::kConcat).num_parameters(), 524800);
}

template <class Attention>
void expect_gradients(Attention& layer, std::int64_t encoder_dim, std::int64_t decoder_dim) {
  const Variable<double> encoder = normal_variable({3, 5, encoder_dim}, 1);
  const Variable<double> decoder = normal_variable({3, decoder_dim}, 2);
  auto inputs = layer.parameters();
  inputs.insert(inputs.end(), {encoder, decoder});
  const auto both = [&] {
    const auto [context, weights] = layer.attend_to({encoder, layer.project(encoder)}, decoder);
    return concat<double>({context, weights}, -1);
  };
  const auto direct = layer.forward(encoder, decoder);
  const Variable<double> found = both();
  EXPECT_EQ(max_difference(found.value().slice(1, 0, encoder_dim), direct.context.value()), 0);
  EXPECT_EQ(found.shape(), (Shape{3, encoder_dim + 5}));
  EXPECT_LE(gradient_error(inputs, both), kGradientTolerance);
}

TEST(AlignmentLayers, HaveGradients) {
  AdditiveAttention<double> additive(4, 3, 7);
  expect_gradients(additive, 4, 3);
  MultiplicativeAttention<double> dot(4, 4, LuongScore::kDot);
  expect_gradients(dot, 4, 4);
  MultiplicativeAttention<double> general(4, 3);
  expect_gradients(general, 4, 3);
  MultiplicativeAttention<double> concatenated(4, 3, LuongScore::kConcat);
  expect_gradients(concatenated, 4, 3);
}

TEST(AlignmentLayers, RefuseMisuse) {
  EXPECT_THAT([] { MultiplicativeAttention<>(3, 4, LuongScore::kDot); },
              Refuses("decoder_dim", "4"));
  AdditiveAttention<double> layer(4, 3, 7);
  EXPECT_THAT(
      [&] {
        layer.forward(normal_variable({2, 5, 4}, 1), normal_variable({3, 3}, 2));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("decoder_hidden [3, 3]")));
}

}  // namespace
}  // namespace heed::nn
