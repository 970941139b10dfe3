// The lessons on sequence models and heads: the numbers that the tutorials print or invent, at
// their precision; PyTorch's numbers for the same seed; and expected properties of trained models.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/command.h"

namespace heed { namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::run_command;

json sequence_values_of(const std::string& lesson) {
  const auto result = run_command({"lesson", lesson, "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return json::parse(result.out);
}

// Returns numbers in order, with `decimals` decimals, separated by spaces.
std::string flat(const json& value, int decimals) {
  if (!value.is_array()) return fmt::format("{:.{}f}", value.get<double>(), decimals);
  std::string text;
  for (const json& element : value) text += (text.empty() ? "" : " ") + flat(element, decimals);
  return text;
}

TEST(RnnAgainstAttentionLesson, HasTheTutorialsOperationsAndPyTorchsGradients) {
  const json values = sequence_values_of("rnn-against-attention");
  EXPECT_EQ(values["recurrent_operations"], 262'144'000);
  EXPECT_EQ(values["attention_operations"], 512'000'000);
  EXPECT_EQ(values["lstm_operations"], 2'097'152'000);
  EXPECT_EQ(values["layer_operations"], 4 * 262'144'000LL + 2 * 512'000'000LL);
  EXPECT_EQ(flat(values["lstm_gradient"], 4),
            "0.7185 0.2724 0.1487 0.0467 0.0070 0.0001 0.0000 0.0000");
  EXPECT_EQ(flat(values["attention_gradient"], 4),
            "0.1350 0.0148 0.0096 0.0136 0.0173 0.0121 0.0361 0.0143");
  EXPECT_NEAR(values["lstm_gradient"][7].get<double>() / 7.53347e-15, 1, 1e-3);
  EXPECT_EQ(values["times"].size(), 5U);
  const auto text = run_command({"lesson", "rnn-against-attention"}).out;
  EXPECT_THAT(text, HasSubstr("n · d²            262,144,000\n"));
  EXPECT_THAT(text, HasSubstr("n² · d            512,000,000\n"));
}

TEST(BottleneckLesson, ShowsWhatWasMadeUpAndWhatIsMeasured) {
  const auto result = run_command({"lesson", "bottleneck", "--json"});
  const json values = json::parse(result.out);
  EXPECT_EQ(values["source_words"], 9);
  EXPECT_EQ(values["target_words"], 9);
  EXPECT_EQ(values["summary_numbers"], 512);
  EXPECT_EQ(flat(values["shares"][0]["numbers_per_word"], 1), "56.9");
  const json& drawn = values["illustrative"];
  EXPECT_THAT(drawn["lengths"], ElementsAre(10, 20, 30, 40, 50, 60));
  EXPECT_THAT(drawn["without_attention"], ElementsAre(35, 32, 28, 22, 16, 12));
  EXPECT_THAT(drawn["with_attention"], ElementsAre(38, 37, 36, 35, 34, 33));
  EXPECT_NEAR(values["influence"][0].get<double>(), 1.637215e-09, 1e-14);
  EXPECT_LT(values["influence"][0].get<double>(), 1e-6 * values["influence"][39].get<double>());

  const json& without = values["measured"][0];
  const json& with = values["measured"][1];
  EXPECT_EQ(without["parameters"], with["parameters"]);
  EXPECT_GT(with["exact_match"].get<double>(), without["exact_match"].get<double>() + 0.2);
  // Short sequences fit through the bottleneck, long ones do not.
  const auto bleu = [](const json& model, std::size_t group) {
    return model["by_length"].at(group)["bleu"].get<double>();
  };
  const std::size_t last = without["by_length"].size() - 1;
  EXPECT_GT(bleu(without, 0), bleu(without, last) + 20);
  EXPECT_GT(bleu(with, last), bleu(without, last) + 20);
}

TEST(BahdanauLesson, IsPyTorchs) {
  const json values = sequence_values_of("bahdanau");
  EXPECT_EQ(flat(values["by_hand_scores"], 4), "0.4430 0.9242 -1.3673");
  EXPECT_EQ(flat(values["by_hand_weights"], 4), "0.3595 0.5817 0.0588");
  EXPECT_EQ(flat(values["by_hand_context"], 4), "0.3007 0.5229");
  EXPECT_EQ(values["encoder_shape"], json({8, 20, 512}));
  EXPECT_EQ(values["decoder_shape"], json({8, 512}));
  EXPECT_EQ(values["context_shape"], json({8, 512}));
  EXPECT_EQ(values["weights_shape"], json({8, 20}));
  EXPECT_EQ(values["parameters"], 262400);
  EXPECT_THAT(flat(values["weights"], 4), StartsWith("0.0668 0.0387 0.0530 0.0385 0.0282 "));
  EXPECT_THAT(flat(values["context"], 4), StartsWith("-0.5878 0.0066 -0.0344 -0.2557 "));
  // A source of 20 states has one row of 20 weights, and one sum.
  EXPECT_EQ(values["first_weights"], values["weights"][0]);
  EXPECT_EQ(flat(values["first_sum"], 4), "1.0000");
  // Additive scores are bounded, dot products grow quadratically.
  const json& growth = values["growth"];
  EXPECT_LT(growth[2]["additive"].get<double>(), 64 * 0.125);
  EXPECT_NEAR(growth[2]["dot"].get<double>() / growth[0]["dot"].get<double>(), 1e4, 1);
}

TEST(LuongLesson, IsPyTorchsAndLearns) {
  const json values = sequence_values_of("luong");
  EXPECT_EQ(values["dot_parameters"], 0);
  EXPECT_EQ(values["general_parameters"], 262'144);
  EXPECT_EQ(values["concat_parameters"], 524'800);
  EXPECT_EQ(flat(values["dot_weights"], 4), "0.5065 0.1863 0.3072");
  EXPECT_EQ(values["general_weights"], values["dot_weights"]);
  EXPECT_EQ(flat(values["swapped_weights"], 4), "0.1863 0.5065 0.3072");
  EXPECT_THAT(flat(values["dot_layer_weights"], 4), StartsWith("0.0080 0.0799 0.0009 0.8217 "));
  EXPECT_THAT(flat(values["general_layer_weights"], 4), StartsWith("0.0052 0.4275 0.0483 "));
  EXPECT_THAT(flat(values["concat_layer_weights"], 4), StartsWith("0.1671 0.1542 0.1531 "));
  ASSERT_EQ(values["trained"].size(), 4U);
  for (const json& kind : values["trained"]) {
    EXPECT_GT(kind["exact_match"].get<double>(), 0.3) << kind;
    EXPECT_GT(kind["bleu"].get<double>(), 50) << kind;
  }
}

TEST(Seq2SeqLesson, IsTheTutorialsModelAndLearnsAnAlignment) {
  const json values = sequence_values_of("seq2seq");
  EXPECT_EQ(values["parameters"], 9'034'560);
  std::int64_t sum = 0;
  for (const json& count : values["parts"]) sum += count.get<std::int64_t>();
  EXPECT_EQ(sum, 9'034'560);
  EXPECT_EQ(values["source_shape"], json({4, 30}));
  EXPECT_EQ(values["target_shape"], json({4, 25}));
  EXPECT_EQ(values["logits_shape"], json({4, 25, 8000}));
  EXPECT_EQ(values["weights_shape"], json({4, 8, 25, 30}));
  EXPECT_EQ(flat(values["first_logits"], 4),
            "0.9224 0.6485 0.3761 -0.0214 0.8898 -0.6139 0.2150 0.1965");
  EXPECT_THAT(flat(values["first_weights"], 4), StartsWith("0.0337 0.0333 0.0341 0.0337 "));
  EXPECT_EQ(flat(values["illustrative"][1], 1), "0.1 0.8 0.0 0.0 0.0 0.1 0.0");
  EXPECT_EQ(flat(values["illustrative_sums"], 2), "1.00 1.00 1.00 1.00 1.00 1.00 1.00 1.00");
  // The result of so short a training depends on the last bits of its products: 0.7 to 0.8.
  EXPECT_GT(values["exact_match"].get<double>(), 0.5);
  EXPECT_THAT(values["written"].get<std::string>(), StartsWith("f e d "));
}

TEST(HeadsLearnLesson, MeasuresWhatWasSimulatedAndWhatIsLearned) {
  const json values = sequence_values_of("heads-learn");
  EXPECT_EQ(flat(values["illustrative_entropy"], 6), "0.524645 0.356207 0.195232 0.000000");
  EXPECT_EQ(flat(values["illustrative_padding"], 6), "0.042857 0.000000 0.000000 0.000000");
  EXPECT_EQ(flat(values["illustrative_similarity"][0], 6), "1.000000 0.355117 0.619412 0.171499");
  // Every query looks at ".", key 6.
  EXPECT_EQ(values["illustrative_scores"]["heads"][3]["vertical"], 1);
  EXPECT_EQ(values["illustrative_scores"]["heads"][3]["vertical_key"], 6);
  const json& found = values["illustrative_scores"]["findings"];
  EXPECT_EQ(found[0]["kind"], "attention to padding");
  EXPECT_THAT(found[0]["heads"], ElementsAre(0));

  EXPECT_LT(values["exact_before"].get<double>(), 0.1);
  EXPECT_GT(values["exact_after"].get<double>(), 0.9);
  const auto best_offset = [&](const char* name) {
    double best = 0;
    for (const json& head : values[name]["heads"]) {
      if (head["offset"] == -5) best = std::max(best, head["offset_weight"].get<double>());
    }
    return best;
  };
  EXPECT_GT(best_offset("after"), 0.5);
  EXPECT_LT(best_offset("before"), 0.3);
  EXPECT_LT(values["after"]["mean_similarity"].get<double>(),
            values["before"]["mean_similarity"].get<double>());
}

TEST(DiagnoseLesson, ShowsHowAttentionFails) {
  const json values = sequence_values_of("diagnose");
  const json& runs = values["runs"];
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_GT(runs[0]["exact_match"].get<double>(), 0.5);
  EXPECT_EQ(runs[1]["exact_match"], 0);
  EXPECT_LT(runs[0]["entropy"].get<double>(), runs[1]["entropy"].get<double>() - 0.2);
  const std::vector<double> printed{1.0000, 0.4713, 0.4957, 0.4592, 0.4897, 0.4686, 0.4515, 0.4845};
  for (std::size_t head = 0; head < printed.size(); ++head) {
    EXPECT_NEAR(values["random_similarity"][0][head].get<double>(), printed[head], 1e-4) << head;
  }
  EXPECT_GT(values["collapsed_similarity"].get<double>(), 0.9);
  EXPECT_EQ(flat(values["no_mask"], 6), "0.090154");
  EXPECT_NEAR(values["wrong_polarity"].get<double>(), 1, 1e-6);
  EXPECT_EQ(values["right_mask"], 0);
  EXPECT_EQ(values["output_difference"], 0);
  EXPECT_EQ(values["bytes"], 805'306'368);
}

}  // namespace
}  // namespace heed
