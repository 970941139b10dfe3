#include "heed/inspect/model_reading.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "heed/core/error.h"
#include "support/refusal.h"
#include "support/tiny_model.h"

namespace heed::inspect { namespace {

using models::Family;
using models::Model;
using testing::ElementsAre;
using testing_support::Refuses;
using testing_support::TinyModel;

class ReadLayers : public testing::Test {
 protected:
  TinyModel files_{Family::kBert};
  Model model_ = models::load(files_.folder());
};

TEST_F(ReadLayers, TokensAreThoseThatScoresAreOf) {
  const ModelReading reading = read_layers(model_, "w3 w1 nobody");
  const ModelText expected = read_text(model_, "w3 w1 nobody");
  EXPECT_EQ(reading.text, "w3 w1 nobody");
  EXPECT_EQ(reading.input.tokens.ids, expected.tokens.ids);
  EXPECT_EQ(reading.input.labels, expected.labels);
  EXPECT_THAT(reading.input.tokens.words, ElementsAre(-1, 0, 1, 2, -1));
  ASSERT_EQ(reading.layers.size(), static_cast<std::size_t>(model_.config().num_layers));
  const AttendedTokens tokens = reading.tokens_of(1);
  EXPECT_EQ(tokens.token_ids, expected.tokens.ids);
  EXPECT_EQ(tokens.weights.shape(), (Shape{model_.config().num_heads, 5, 5}));
}

TEST_F(ReadLayers, PairsHaveWordsToo) {
  const ModelReading reading = read_layers(model_, "w3 w1", "w1");
  EXPECT_EQ(reading.text, "w3 w1 / w1");
  EXPECT_THAT(reading.input.type_ids, ElementsAre(0, 0, 0, 0, 1, 1));
  EXPECT_THAT(reading.input.tokens.words, ElementsAre(-1, 0, 1, -1, 2, -1));
}

TEST_F(ReadLayers, RefusesWhatIsNotShown) {
  std::string longest;
  for (std::int64_t i = 0; i < kMaxTokens; ++i) longest += "w1 ";
  EXPECT_THAT([&] { read_layers(model_, longest); }, Refuses("text", "514"));
  const ModelReading reading = read_layers(model_, "w1");
  EXPECT_THAT([&] { static_cast<void>(reading.tokens_of(-1)); }, Refuses("layer", "-1"));
}

}  // namespace
}  // namespace heed::inspect
