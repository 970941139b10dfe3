#include "demonstrate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <sstream>
#include <string>

#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/nn/functional.h"
#include "support/refusal.h"

namespace heed { namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;
using testing_support::Message;

std::string attention_text(std::int64_t seq_len, std::int64_t embed_dim, std::int64_t num_heads) {
  std::ostringstream out;
  demonstrate_attention(out, seq_len, embed_dim, num_heads);
  return out.str();
}

std::string causal_text(std::int64_t seq_len) {
  std::ostringstream out;
  demonstrate_causal_attention(out, seq_len);
  return out.str();
}

TEST(DemonstrateAttention, HasTheTutorialsLayoutAndDefaults) {
  set_seed(0);
  std::ostringstream out;
  demonstrate_attention(out);
  const std::string line(60, '=');
  EXPECT_THAT(out.str(), StartsWith(line + "\nATTENTION DEMONSTRATION\n" + line +
                                    "\n\n"
                                    "Multi-Head Attention:\n"
                                    "  Embed dim: 32\n"
                                    "  Num heads: 4\n"
                                    "  Head dim: 8\n\n"
                                    "Input shape: (1, 6, 32)\n"
                                    "  (batch=1, seq_len=6, embed_dim=32)\n\n"
                                    "Output shape: (1, 6, 32)\n"
                                    "Attention weights shape: (1, 4, 6, 6)\n"
                                    "  (batch, heads, seq, seq)\n\n"
                                    "Attention weights for head 0, position 0:\n  ["));
  EXPECT_THAT(out.str(), EndsWith("]\n  Sum: 1.0000 (should be 1.0)\n"));
}

TEST(DemonstrateAttention, PrintsTheWeightsOfTheDrawsItNames) {
  set_seed(3);
  const std::string text = attention_text(3, 8, 2);
  set_seed(3);
  const auto parameters = attention_init(default_generator(), 8, 8);
  const auto x = default_generator().randn({1, 3, 8});
  const auto weights = multi_head_attention(x, x, parameters, 2).weights;

  const char* printed = text.c_str() + text.find('[');
  for (std::int64_t key = 0; key < 3; ++key) {
    char* end = nullptr;
    EXPECT_NEAR(std::strtof(printed + 1, &end), weights(0, 0, 0, key), 5e-5F);
    printed = end;
  }
  EXPECT_EQ(*printed, ']');
}

TEST(DemonstrateAttention, TheSameSeedGivesTheSameText) {
  set_seed(1);
  const std::string first = attention_text(6, 32, 4);
  EXPECT_NE(attention_text(6, 32, 4), first);
  set_seed(1);
  EXPECT_EQ(attention_text(6, 32, 4), first);
}

TEST(DemonstrateAttention, ChecksItsArgumentsBeforeItWrites) {
  std::ostringstream out;
  const auto refused = [&out](std::int64_t seq_len, std::int64_t embed_dim, std::int64_t num_heads,
                              const Message& text) {
    EXPECT_THAT([&] { demonstrate_attention(out, seq_len, embed_dim, num_heads); },
                ThrowsMessage<InvalidArgument>(text));
  };
  refused(0, 32, 4, {"seq_len", "0"});
  refused(6, -1, 4, {"embed_dim", "-1"});
  refused(6, 32, 0, {"num_heads", "0"});
  refused(6, 30, 4, {"embed_dim", "30"});
  EXPECT_EQ(out.str(), "");
}

TEST(DemonstrateCausalAttention, DrawsTheMaskAndHidesTheFuture) {
  set_seed(0);
  const std::string text = causal_text(6);
  EXPECT_THAT(text, HasSubstr("CAUSAL ATTENTION DEMONSTRATION\n"));
  EXPECT_THAT(text, HasSubstr("  Position 0: █·····\n"
                              "  Position 1: ██····\n"
                              "  Position 2: ███···\n"
                              "  Position 3: ████··\n"
                              "  Position 4: █████·\n"
                              "  Position 5: ██████\n"));
  EXPECT_THAT(text, HasSubstr("  Position 0: can only see position 0\n"
                              "  Position 1: can see positions 0, 1\n"
                              "  Position 5: can see all positions\n"));
  EXPECT_THAT(text, EndsWith("With causal mask (position 0 only attends to itself):\n"
                             "  [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]\n"));
}

TEST(DemonstrateCausalAttention, SaysOnlyWhatIsTrueOfShortSequences) {
  EXPECT_THAT(causal_text(2), HasSubstr("  Position 1: can see all positions\n"));
  EXPECT_THAT(causal_text(2), Not(HasSubstr("can see positions 0, 1")));
  EXPECT_THAT(causal_text(1), Not(HasSubstr("can see all positions")));
  EXPECT_THAT(causal_text(1), EndsWith("  [1.0]\n"));
}

TEST(DemonstrateCausalAttention, RefusesAnEmptySequence) {
  EXPECT_THAT([] { causal_text(0); },
              ThrowsMessage<InvalidArgument>(
                  "demonstrate_causal_attention: seq_len is 0; expected at least 1"));
}

}  // namespace
}  // namespace heed
