// The lessons that have no seed in the tutorials: properties that hold for all drawn numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/command.h"

namespace heed { namespace {

using nlohmann::json;
using testing::Each;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;
using Row = std::vector<float>;
using Matrix = std::vector<Row>;
using Lines = std::vector<std::string>;

json values_of(const std::string& lesson) {
  const auto result = testing_support::run_command({"lesson", lesson, "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return json::parse(result.out);
}

void expect_rows_sum_to_1(const Matrix& weights) {
  for (const Row& row : weights) {
    float sum = 0;
    for (const float weight : row) {
      EXPECT_GE(weight, 0);
      sum += weight;
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

void expect_near(const Matrix& found, const Matrix& expected, float tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_THAT(found[i], Pointwise(FloatNear(tolerance), expected[i])) << "row " << i;
  }
}

float largest(const Row& row) { return *std::max_element(row.begin(), row.end()); }

const Lines kCausalBlocks{"█·····", "██····", "███···", "████··", "█████·", "██████"};

TEST(DemonstrateAttentionLesson, ShowsFourHeadsOfSixPositions) {
  const json values = values_of("demonstrate-attention");
  const auto heads = values["weights"][0].get<std::vector<Matrix>>();
  ASSERT_EQ(heads.size(), 4U);
  for (const Matrix& head : heads) {
    EXPECT_EQ(head.size(), 6U);
    expect_rows_sum_to_1(head);
  }
  EXPECT_EQ(values["out"][0].size(), 6U);
  EXPECT_EQ(values["out"][0][0].size(), 32U);
}

TEST(DemonstrateCausalAttentionLesson, GivesTheFirstRowToItself) {
  const json values = values_of("demonstrate-causal-attention");
  const auto causal = values["causal_weights"].get<Matrix>();
  EXPECT_THAT(causal[0], ElementsAre(1, 0, 0, 0, 0, 0));
  expect_rows_sum_to_1(causal);
  for (std::size_t q = 0; q < 6; ++q) {
    for (std::size_t k = q + 1; k < 6; ++k) EXPECT_EQ(causal[q][k], 0);
  }
  const auto full = values["full_weights"].get<Matrix>();
  expect_rows_sum_to_1(full);
  EXPECT_LT(full[0][0], 1);
  EXPECT_EQ(values["mask"].get<Lines>(), kCausalBlocks);
}

TEST(ScalingLesson, DeviationGrowsAsTheRootAndScalingUndoesIt) {
  const json values = values_of("scaling");
  std::vector<int> head_dims;
  for (const json& row : values["growth"]) {
    const double root = std::sqrt(row["d_k"].get<double>());
    EXPECT_DOUBLE_EQ(row["root"], root);
    EXPECT_DOUBLE_EQ(row["scale"], 1 / root);
    EXPECT_NEAR(row["deviation"].get<double>() / root, 1, 0.06);
    EXPECT_NEAR(row["scaled_deviation"], 1, 0.06);
    EXPECT_NEAR(row["mean"].get<double>() / root, 0, 0.1);
    head_dims.push_back(row["d_k"]);
  }
  EXPECT_THAT(head_dims, ElementsAre(4, 16, 64, 512));
  EXPECT_EQ(values["growth"][2]["scale"], 0.125);
  EXPECT_NEAR(values["growth"][3]["root"], 22.6, 0.05);
}

TEST(ScalingLesson, LargeScoresSaturateAndLoseTheirGradient) {
  const json values = values_of("scaling");
  const auto weights = values["saturation"].get<Matrix>();
  expect_near({weights[0]}, {{0.9999F, 4.5e-5F, 4.5e-5F}}, 1e-5F);
  expect_near({weights[1]}, {{0.9998F, 0.0001F, 0.0001F}}, 5e-5F);
  expect_near({weights[2]}, {{0.452F, 0.274F, 0.274F}}, 5e-4F);

  // wᵢ (gᵢ − w₀) for g = [1, 0, 0], computed with exp only.
  const double w_large = 1 / (1 + 2 * std::exp(-9.0));
  const double w_normal = 1 / (1 + 2 * std::exp(-0.5));
  const auto gradient = values["gradient"].get<Matrix>();
  EXPECT_NEAR(gradient[0][0], w_large * (1 - w_large), 1e-6);
  EXPECT_NEAR(gradient[1][0], w_normal * (1 - w_normal), 1e-6);
  EXPECT_GT(values["gradient_ratio"], 1000);
  EXPECT_GT(largest(values["unscaled_weights"].get<Matrix>()[0]), 0.8F);
  EXPECT_LT(largest(values["scaled_weights"].get<Matrix>()[0]), 0.3F);
}

TEST(MasksLesson, EveryConventionShowsTheSameMask) {
  const json values = values_of("masks");
  EXPECT_EQ(values["blocks"].get<Lines>(), kCausalBlocks);
  EXPECT_THAT(values["hash"].get<Lines>(),
              ElementsAre("#.....", "##....", "###...", "####..", "#####.", "######"));
  EXPECT_EQ(values["check"][1], "✓ ✓ ✗ ✗ ✗ ✗");
  EXPECT_EQ(values["allow"][1], "T T F F F F");
  EXPECT_EQ(values["block"][1], "F F T T T T");
  EXPECT_EQ(values["tril"][1], "1 1 0 0 0 0");
  EXPECT_EQ(values["additive"][1], "0 0 -inf -inf -inf -inf");
  // Different kinds of masks are different options: the same weights except for the last bits.
  for (const char* form : {"allow", "block", "additive"}) {
    EXPECT_LT(values["differences"][form], 1e-6);
  }
}

TEST(MasksLesson, PadsTheTutorialsBatchAndCombinesWithCausal) {
  const json values = values_of("masks");
  EXPECT_THAT(values["padding"].get<Lines>(), ElementsAre("1 1 1 1 0 0", "1 1 1 1 1 0"));
  EXPECT_THAT(values["padding_shape"].get<std::vector<int>>(), ElementsAre(2, 1, 1, 6));
  EXPECT_THAT(values["combined"][0].get<Lines>(),
              ElementsAre("#.....", "##....", "###...", "####..", "####..", "####.."));
  EXPECT_THAT(values["combined"][1].get<Lines>(),
              ElementsAre("#.....", "##....", "###...", "####..", "#####.", "#####."));
}

TEST(MasksLesson, TheWrongPolaritySeesOnlyTheFuture) {
  const json values = values_of("masks");
  EXPECT_EQ(values["wrong"][0], ".#####");
  const auto weights = values["wrong_weights"].get<Matrix>();
  for (std::size_t q = 0; q < 6; ++q) {
    for (std::size_t k = 0; k <= q; ++k) EXPECT_EQ(weights[q][k], 0);
  }
  EXPECT_THAT(weights[5], Each(0));
  expect_rows_sum_to_1(Matrix(weights.begin(), weights.end() - 1));
}

TEST(MaskedRowsLesson, TheFormulaGivesNanAndTheRuleNothing) {
  const json values = values_of("masked-rows");
  EXPECT_THAT(values["masked_scores"][1].get<Lines>(), Each("-inf"));
  EXPECT_THAT(values["naive_weights"][1].get<Lines>(), Each("nan"));
  EXPECT_THAT(values["naive_out"][1].get<Lines>(), Each("nan"));
  EXPECT_THAT(values["weights"][1].get<Row>(), Each(0));
  EXPECT_THAT(values["out"][1].get<Row>(), Each(0));
  EXPECT_EQ(values["lse"][1], "-inf");
  EXPECT_THAT(values["weights"][0].get<Row>(), ElementsAre(1, 0, 0));
  for (const std::size_t row : {0U, 2U}) {
    expect_near({values["weights"][row].get<Row>()}, {values["naive_weights"][row].get<Row>()},
                1e-6F);
    expect_near({values["out"][row].get<Row>()}, {values["naive_out"][row].get<Row>()}, 1e-6F);
  }
}

TEST(MaskedRowsLesson, RepairsKeepNanInGradientsAndHideMistakes) {
  const json values = values_of("masked-rows");
  expect_near(values["repaired_weights"].get<Matrix>(), values["weights"].get<Matrix>(), 1e-6F);
  EXPECT_THAT(values["repaired_gradient"][1].get<Lines>(), Each("nan"));
  EXPECT_THAT(values["grad_query"][1].get<Row>(), Each(0));
  EXPECT_GT(std::abs(values["grad_query"][2][0].get<float>()), 0);
  EXPECT_THAT(values["hidden_mistake"][2].get<Row>(), Each(0));
  EXPECT_THAT(values["shown_mistake"][2].get<Lines>(), Each("nan"));
  expect_near({values["finite_weights"][1].get<Row>()}, {{1 / 3.0F, 1 / 3.0F, 1 / 3.0F}}, 1e-6F);
}

// Printed by PyTorch 2.13 for manual_seed(42) and three times randn(1, 4, 8).
TEST(TemperatureLesson, EqualsPyTorch) {
  const json values = values_of("temperature");
  expect_near(values["weights_0.5"].get<Matrix>(),
              {{0.1193233F, 0.5322459F, 0.3323224F, 0.0161083F},
               {0.0034165F, 0.8840781F, 0.0153519F, 0.0971534F},
               {0.0314471F, 0.1229469F, 0.0966537F, 0.7489524F},
               {0.1261850F, 0.1105685F, 0.1299314F, 0.6333151F}},
              2e-6F);
  expect_near(values["weights_1.0"].get<Matrix>(),
              {{0.1942400F, 0.4102347F, 0.3241575F, 0.0713677F},
               {0.0407521F, 0.6555482F, 0.0863854F, 0.2173143F},
               {0.1040515F, 0.2057392F, 0.1824179F, 0.5077914F},
               {0.1926369F, 0.1803231F, 0.1954757F, 0.4315644F}},
              2e-6F);
  expect_near(values["weights_2.0"].get<Matrix>(),
              {{0.2298183F, 0.3339884F, 0.2968884F, 0.1393048F},
               {0.1139477F, 0.4570177F, 0.1659017F, 0.2631328F},
               {0.1683689F, 0.2367533F, 0.2229314F, 0.3719463F},
               {0.2236328F, 0.2163672F, 0.2252746F, 0.3347254F}},
              2e-6F);
  EXPECT_THAT(values["weights_1.0"][0].get<Row>(),
              Pointwise(FloatNear(5e-5F), Row{0.1942F, 0.4102F, 0.3242F, 0.0714F}));
}

TEST(TemperatureLesson, FlattensAsItRisesBetweenOneHotAndUniform) {
  const json values = values_of("temperature");
  float previous = 1;
  for (const char* temperature : {"0.1", "0.5", "1.0", "1.5", "2.0", "3.0"}) {
    const float now = largest(values[std::string("first_row_") + temperature].get<Row>());
    EXPECT_LT(now, previous) << temperature;
    previous = now;
  }
  const Row first{0, 1, 0, 0};
  const Row last{0, 0, 0, 1};
  expect_near(values["cold"].get<Matrix>(), {first, first, last, last}, 1e-6F);
  expect_near(values["hot"].get<Matrix>(), Matrix(4, Row(4, 0.25F)), 1e-5F);
}

TEST(HeadsLesson, CountsAndCutsAsTheTutorialsSay) {
  const json values = values_of("heads");
  EXPECT_EQ(values["num_parameters"], 16640);
  EXPECT_THAT(values["split_shape"].get<std::vector<int>>(), ElementsAre(2, 8, 10, 8));
  std::vector<std::pair<std::string, int>> head_dims;
  for (const json& row : values["configurations"]) {
    head_dims.emplace_back(row["model"], row["head_dim"]);
    EXPECT_DOUBLE_EQ(row["scale"], 1 / std::sqrt(row["head_dim"].get<double>()));
  }
  using testing::Pair;
  EXPECT_THAT(head_dims, ElementsAre(Pair("the one above", 8), Pair("a small one", 16),
                                     Pair("the first paper", 64), Pair("GPT-2", 64),
                                     Pair("GPT-3", 128), Pair("Llama 2 7B", 128)));
  EXPECT_EQ(values["configurations"][1]["scale"], 0.25);
}

TEST(HeadsLesson, TheMeanIsThatOfTheFirstFourHeads) {
  const json values = values_of("heads");
  const auto heads = values["eight_heads"].get<std::vector<Matrix>>();
  const auto mean = values["mean_of_four"].get<Matrix>();
  ASSERT_EQ(heads.size(), 8U);
  for (std::size_t q = 0; q < 8; ++q) {
    for (std::size_t k = 0; k < 8; ++k) {
      const float sum = heads[0][q][k] + heads[1][q][k] + heads[2][q][k] + heads[3][q][k];
      EXPECT_NEAR(mean[q][k], sum / 4, 1e-6);
    }
  }
  expect_rows_sum_to_1(mean);
  expect_rows_sum_to_1(values["one_head"].get<Matrix>());
  EXPECT_LT(values["spread"]["mean_of_four"], values["spread"]["head_0"]);
}

TEST(SelfAndCrossLesson, ShapesFollowTheirSources) {
  const json values = values_of("self-and-cross");
  const auto shape = [&](const char* name) { return values[name].get<std::vector<int>>(); };
  EXPECT_THAT(shape("self_weights"), ElementsAre(2, 1, 6, 6));
  EXPECT_EQ(shape("self_out"), shape("self_x"));
  EXPECT_THAT(shape("cross_x"), ElementsAre(2, 4, 64));
  EXPECT_THAT(shape("cross_context"), ElementsAre(2, 6, 64));
  EXPECT_THAT(shape("cross_weights"), ElementsAre(2, 1, 4, 6));
  EXPECT_THAT(shape("cross_out"), ElementsAre(2, 4, 64));
  EXPECT_THAT(shape("out"), ElementsAre(2, 1, 4, 16));
  expect_rows_sum_to_1(values["cross_first_weights"].get<Matrix>());
  EXPECT_THAT(values["refusal"].get<std::string>(), HasSubstr("q_len is 4"));
  EXPECT_EQ(values["bottom_right"][0], "###...");
}

TEST(PositionLesson, OnlyPositionsTellOrdersApart) {
  const json values = values_of("position");
  EXPECT_LT(values["without_positions"], 1e-6);
  EXPECT_GT(values["with_sinusoidal"], 1e-2);
  EXPECT_GT(values["with_learned"], 1e-3);
}

TEST(PositionLesson, TablesCostAndReachWhatTheTutorialsSay) {
  const json values = values_of("position");
  EXPECT_EQ(values["sinusoidal_parameters"], 0);
  EXPECT_EQ(values["learned_parameters"], 512000);
  EXPECT_THAT(values["refusal"].get<std::string>(), HasSubstr("1001 positions"));
  const auto table = values["table"].get<Matrix>();
  EXPECT_THAT(table[0], ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  EXPECT_NEAR(table[3][2], std::sin(0.3), 1e-6);
  const auto products = values["three_apart"].get<Row>();
  EXPECT_THAT(products, Each(FloatNear(products[0], 1e-4F)));
}

TEST(ComplexityLesson, CountsOperationsAndBytes) {
  const json values = values_of("complexity");
  EXPECT_EQ(values["recurrent_operations"], 262144000);
  EXPECT_EQ(values["attention_operations"], 512000000);
  EXPECT_EQ(values["entries"], 100000000);
  EXPECT_EQ(values["bytes_per_layer"], 805306368);
  std::int64_t previous = 0;
  for (const json& row : values["times"]) {
    EXPECT_GT(row["milliseconds"], 0);
    const auto operations = row["operations"].get<std::int64_t>();
    if (previous != 0) {
      EXPECT_EQ(operations, 4 * previous);
    }
    previous = operations;
  }
  EXPECT_EQ(previous, 2048 * 2048 * 32);
}

TEST(ComplexityLesson, ComparesAttentionByHandWithTheFusedCall) {
  const json values = values_of("complexity");
  std::vector<std::string> methods;
  for (const json& row : values["methods"]) {
    methods.push_back(row["method"]);
    EXPECT_GT(row["milliseconds"], 0) << methods.back();
  }
  EXPECT_THAT(methods, ElementsAre("plain loops", "by hand", "fused"));
  EXPECT_LT(values["largest_difference"], 1e-5);
  EXPECT_GT(values["largest_difference"], 0);
}

TEST(VariationsLesson, EqualScoresAreMeansAndProjectionsBreakSymmetry) {
  const json values = values_of("variations");
  expect_near(values["equal_scores"].get<Matrix>(),
              {{1, 0, 0}, {0.5F, 0.5F, 0}, {1 / 3.0F, 1 / 3.0F, 1 / 3.0F}}, 1e-6F);
  EXPECT_EQ(values["asymmetry"], 0);
  expect_near(values["symmetric_scores"].get<Matrix>(),
              {{0.7071F, 0, 0.7071F}, {0, 0.7071F, 0.7071F}, {0.7071F, 0.7071F, 1.4142F}}, 5e-5F);
}

TEST(VariationsLesson, TheScaleMattersMoreWithWiderHeads) {
  const json rows = values_of("variations")["no_scale"];
  ASSERT_EQ(rows.size(), 2U);
  const auto gain = [](const json& row) {
    return largest(row["unscaled"].get<Row>()) - largest(row["scaled"].get<Row>());
  };
  EXPECT_THAT(rows[0]["scaled"].get<Row>(),
              Pointwise(FloatNear(5e-5F), Row{0.2149F, 0.3615F, 0.1914F, 0.2321F}));
  EXPECT_GT(gain(rows[0]), 0);
  EXPECT_GT(gain(rows[1]), gain(rows[0]));
  EXPECT_GT(largest(rows[1]["unscaled"].get<Row>()), 0.9F);
}

TEST(VariationsLesson, RowsSumTo1WithAndWithoutAMask) {
  const json values = values_of("variations");
  const auto full = values["no_mask"].get<Matrix>();
  expect_rows_sum_to_1(full);
  EXPECT_GT(full[0][3], 0);
  EXPECT_THAT(full[3], Pointwise(FloatNear(5e-5F), Row{0.2149F, 0.3615F, 0.1914F, 0.2321F}));
  EXPECT_THAT(values["no_mask_row_sums"].get<Row>(), Each(FloatNear(1, 1e-6F)));
  EXPECT_THAT(values["row_sums"].get<Row>(), Each(FloatNear(1, 1e-6F)));
  EXPECT_EQ(values["row_sums"].size(), 5U);
  for (const json& row : values["first_rows"]) EXPECT_EQ(row, json({1, 0, 0, 0}));
}

TEST(VariationsLesson, VarianceAndParametersFollowTheirFormulas) {
  const json values = values_of("variations");
  for (const json& row : values["variance"]) {
    EXPECT_NEAR(row["variance"].get<double>() / row["expected"].get<double>(), 1, 0.1);
    const double sigma = row["sigma"];
    EXPECT_NEAR(row["scaled_deviation"].get<double>() / (sigma * sigma), 1, 0.05);
  }
  for (const json& row : values["parameters"]) {
    EXPECT_EQ(row["count"], 4 * row["width"].get<int>() * row["head_dim"].get<int>());
  }
  EXPECT_EQ(values["parameters"][0]["count"], 64);
}

TEST(VariationsLesson, AKeyBiasChangesNothingAndAQueryBiasDoes) {
  const json values = values_of("variations");
  EXPECT_LT(values["key_bias_change"], 1e-6);
  EXPECT_GT(values["query_bias_change"], 0.1);
}

}  // namespace
}  // namespace heed
