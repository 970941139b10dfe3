#include "heed/attention/position.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "core/stream_fixture.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::elements_of;
using testing_support::Refuses;
using testing_support::Stream;

TEST(SinusoidalEncoding, AgreesWithPyTorch) {
  Stream<double>("sinusoidal_double").expect_near(sinusoidal_encoding<double>(50, 64), 1e-13);
  // The tutorials compute the angle in float, which is off by up to 49 · 2⁻²³ at position 49.
  Stream<float>("sinusoidal_float").expect_near(sinusoidal_encoding(50, 64), 1e-5);
}

TEST(SinusoidalEncoding, AlternatesSineAndCosine) {
  const Tensor<float> table = sinusoidal_encoding(3, 4);
  EXPECT_FLOAT_EQ(table(0, 0), 0);
  EXPECT_FLOAT_EQ(table(0, 1), 1);
  EXPECT_FLOAT_EQ(table(2, 0), std::sin(2.0F));
  EXPECT_FLOAT_EQ(table(2, 1), std::cos(2.0F));
  EXPECT_FLOAT_EQ(table(2, 2), std::sin(0.02F));
  EXPECT_FLOAT_EQ(table(2, 3), std::cos(0.02F));
}

// PE(pos + offset) is PE(pos) with pair i rotated by offset / 10000^(2i / d_model), for every pos.
TEST(SinusoidalEncoding, MakesRelativePositionsLinear) {
  constexpr std::int64_t kWidth = 32;
  const Tensor<double> table = sinusoidal_encoding<double>(200, kWidth);
  for (const std::int64_t offset : {1, 7, 100}) {
    for (std::int64_t dim = 0; dim < kWidth; dim += 2) {
      const double turn =
          static_cast<double>(offset) / std::pow(10000.0, static_cast<double>(dim) / kWidth);
      for (std::int64_t pos = 0; pos < 100; ++pos) {
        const double sine = table(pos, dim);
        const double cosine = table(pos, dim + 1);
        ASSERT_NEAR(table(pos + offset, dim), sine * std::cos(turn) + cosine * std::sin(turn),
                    1e-13);
        ASSERT_NEAR(table(pos + offset, dim + 1), cosine * std::cos(turn) - sine * std::sin(turn),
                    1e-13);
      }
    }
  }
}

TEST(SinusoidalEncoding, MayBeEmpty) {
  EXPECT_EQ(sinusoidal_encoding(0, 8).shape(), (Shape{0, 8}));
  EXPECT_EQ(sinusoidal_encoding(5, 0).shape(), (Shape{5, 0}));
}

TEST(SinusoidalEncoding, ChecksItsArguments) {
  EXPECT_THAT([] { sinusoidal_encoding(10, 7); },
              ThrowsMessage<InvalidArgument>(testing::AllOf(
                  HasSubstr("sinusoidal_encoding: d_model is 7; expected an even number"),
                  HasSubstr("pairs of a sine and a cosine"))));
  EXPECT_THAT([] { sinusoidal_encoding(-1, 8); }, Refuses("max_len", "-1"));
}

TEST(LearnedEncoding, IsPyTorchsNormal) {
  TorchGenerator generator(6);
  const Tensor<float> table = learned_encoding(generator, 1000, 512);
  EXPECT_EQ(table.num_elements(), 512'000);
  Stream<float>("learned_last_row").expect_near(table.view().select(0, 999), 1e-6 * 0.02);
}

TEST(LearnedEncoding, ChecksItsArguments) {
  TorchGenerator generator;
  EXPECT_THAT([&] { learned_encoding(generator, 10, -8); }, Refuses("d_model", "-8"));
  EXPECT_THROW(learned_encoding(generator, 10, 8, -0.02), InvalidArgument);
}

TEST(AddPositions, AddsTheSameRowsToEverySequence) {
  const Tensor<float> table({3, 2}, {1, 2, 3, 4, 5, 6});
  const Tensor<float> x({2, 2, 2}, {10, 20, 30, 40, 50, 60, 70, 80});
  const Tensor<float> sum = add_positions(x, table);
  EXPECT_EQ(sum.shape(), x.shape());
  EXPECT_THAT(sum.elements(), testing::ElementsAre(11, 22, 33, 44, 51, 62, 73, 84));
  EXPECT_THAT(elements_of(add_positions(x.view().select(0, 1), table)),
              testing::ElementsAre(51, 62, 73, 84));
}

TEST(AddPositions, ReadsStridedViewsInDouble) {
  const Tensor<double> table({2, 2}, {1, 2, 3, 4});
  const Tensor<double> x({2, 2}, {10, 20, 30, 40});
  EXPECT_THAT(elements_of(add_positions(x.view().permute({1, 0}), table)),
              testing::ElementsAre(11, 32, 23, 44));
}

TEST(AddPositions, ChecksItsArguments) {
  const Tensor<float> table({4, 6});
  const auto adding = [&](const Shape& shape) {
    return [&table, shape] { add_positions(Tensor<float>(shape), table); };
  };
  EXPECT_THAT(adding({5, 6}), Refuses("x", "5"));
  EXPECT_THAT(adding({2, 3, 8}), Refuses("x d_model", "8"));
  EXPECT_THAT(adding({6}), Refuses("x", "[6]"));
  EXPECT_THAT(
      [&] {
        add_positions(table, Tensor<float>({1, 4, 6}));
      },
      Refuses("table", "[1, 4, 6]"));
}

// The numbers of the paper's figure 3 and of its authors' code.
TEST(AlibiSlopes, AreThoseOfThePaper) {
  const Tensor<float> eight = alibi_slopes(8);
  for (std::int64_t h = 0; h < 8; ++h)
    EXPECT_EQ(eight(h), std::ldexp(1.0F, static_cast<int>(-1 - h)));
  const Tensor<double> sixteen = alibi_slopes<double>(16);
  EXPECT_DOUBLE_EQ(sixteen(0), std::sqrt(0.5));
  EXPECT_EQ(sixteen(15), 1.0 / 256);
  const Tensor<double> six = alibi_slopes<double>(6);
  const double expected[] = {1.0 / 4, 1.0 / 16, 1.0 / 64, 1.0 / 256, 1.0 / 2, 1.0 / 8};
  for (std::int64_t h = 0; h < 6; ++h) EXPECT_DOUBLE_EQ(six(h), expected[h]);
  EXPECT_EQ(alibi_slopes(1)(0), 1.0F / 256);
  EXPECT_TRUE(alibi_slopes(0).empty());
}

TEST(AlibiSlopes, RefusesANegativeNumber) {
  EXPECT_THAT([] { alibi_slopes(-1); }, Refuses("num_heads", "-1"));
}

}  // namespace
}  // namespace heed
