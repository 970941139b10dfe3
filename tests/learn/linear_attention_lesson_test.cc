// The lesson on linear attention: recomputes weights, products, states and recall.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/command.h"

namespace heed { namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing_support::read_text;
using testing_support::run_command;
using testing_support::TemporaryFolder;

class LinearAttentionLesson : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const TemporaryFolder folder;
    const auto result =
        run_command({"lesson", "linear-attention", "--out", folder / "lesson.json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    text = result.out;
    values = json::parse(read_text(folder / "lesson.json"));
  }

  inline static std::string text;
  inline static json values;
};

double elu(double x) { return x > 0 ? x + 1 : std::exp(x); }
double relu(double x) { return std::max(x, 0.0); }

// Returns the similarities of the lesson's query with its keys, divided by their sum.
template <class Similarity>
std::vector<double> weights_of(const json& rows, const Similarity& similarity) {
  std::vector<double> weights;
  double sum = 0;
  for (const json& row : rows) {
    weights.push_back(similarity(row["key"][0].get<double>(), row["key"][1].get<double>()));
    sum += weights.back();
  }
  for (double& weight : weights) weight /= sum;
  return weights;
}

TEST_F(LinearAttentionLesson, WeightsAreSimilaritiesDividedByTheirSum) {
  const json& rows = values["weights"];
  ASSERT_EQ(rows.size(), 5U);
  const std::vector<std::pair<std::string, std::vector<double>>> expected{
      {"softmax", weights_of(rows, [](double a, double b) { return std::exp(a - 0.5 * b); })},
      {"elu+1",
       weights_of(rows, [](double a, double b) { return elu(1) * elu(a) + elu(-0.5) * elu(b); })},
      {"relu", weights_of(rows, [](double a, double b) {
         return relu(1) * relu(a) + relu(-0.5) * relu(b);
       })}};
  for (const auto& [name, weights] : expected) {
    for (std::size_t k = 0; k < weights.size(); ++k) {
      EXPECT_NEAR(rows[k][name].get<double>(), weights[k], 1e-6) << name << ", key " << k;
    }
  }
}

TEST_F(LinearAttentionLesson, FeaturesOrderKeysOtherwiseAndGrowMoreSlowly) {
  const json& rows = values["weights"];
  const auto weight = [&](std::size_t k, const std::string& name) {
    return rows[k][name].get<double>();
  };
  EXPECT_EQ(rows[1]["key"], json({1.0, 1.0}));
  EXPECT_EQ(rows[2]["key"], json({0.5, -1.0}));
  EXPECT_GT(weight(1, "elu+1"), weight(2, "elu+1"));
  EXPECT_LT(weight(1, "softmax"), weight(2, "softmax"));
  EXPECT_LT(weight(1, "product"), weight(2, "product"));
  EXPECT_EQ(weight(3, "relu"), 0);
  EXPECT_EQ(weight(4, "relu"), 0);
  for (std::size_t k = 1; k < rows.size(); ++k)
    EXPECT_GT(weight(0, "product"), weight(k, "product"));
  for (const std::string name : {"elu+1", "relu"}) EXPECT_LT(weight(0, name), weight(0, "softmax"));
}

TEST_F(LinearAttentionLesson, BothOrdersGiveTheSame) {
  EXPECT_LT(values["orders"]["difference"].get<double>(), 1e-13);
  EXPECT_LT(values["orders"]["of_heed"].get<double>(), 1e-13);
  double most = 0;
  for (const json& row : values["order_out"][0][0]) {
    for (const json& number : row) most = std::max(most, std::abs(number.get<double>()));
  }
  EXPECT_GT(most, 0.1);
}

TEST_F(LinearAttentionLesson, WorkIsEqualWhereThereAreAsManyTokensAsDimensions) {
  for (const json& row : values["products"]) {
    const auto length = row["length"].get<std::int64_t>();
    const auto weights = row["weights_first"].get<std::int64_t>();
    const auto state = row["state_first"].get<std::int64_t>();
    EXPECT_EQ(weights, length * length * (64 + 64));
    EXPECT_EQ(state, 2 * length * 64 * 64);
    EXPECT_EQ(weights * 64, state * length);
    EXPECT_EQ(weights == state, length == 64);
  }
}

TEST_F(LinearAttentionLesson, OrdersCostTheSameAtTheHarmonicMeanOfTheDimensions) {
  const json& rows = values["crossings"];
  ASSERT_EQ(rows.size(), 5U);
  for (const json& row : rows) {
    const auto d = row["d"].get<double>();
    const auto d_v = row["d_v"].get<double>();
    const auto length = row["length"].get<double>();
    EXPECT_NEAR(length * length * (d + d_v), 2 * length * d * d_v, 1e-6) << row;
    EXPECT_EQ(d == d_v, length == d);
  }
}

TEST_F(LinearAttentionLesson, EachStateIsTheSumSoFar) {
  constexpr std::array<std::array<double, 2>, 4> kKeys{{{1, -1}, {0, 1}, {2, 0}, {-1, 1}}};
  constexpr std::array<std::array<double, 2>, 4> kQueries{{{1, 0}, {0, 1}, {-1, 0.5}, {1, 1}}};
  const json& rows = values["states"];
  ASSERT_EQ(rows.size(), kKeys.size());
  for (std::size_t t = 0; t < kKeys.size(); ++t) {
    double above = 0;
    double below = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      double sum = 0;
      double norm = 0;
      for (std::size_t past = 0; past <= t; ++past) {
        sum += elu(kKeys[past][i]) * static_cast<double>(past + 1);
        norm += elu(kKeys[past][i]);
      }
      EXPECT_NEAR(rows[t]["sum"][i].get<double>(), sum, 1e-12);
      EXPECT_NEAR(rows[t]["norm"][i].get<double>(), norm, 1e-12);
      above += elu(kQueries[t][i]) * sum;
      below += elu(kQueries[t][i]) * norm;
    }
    EXPECT_NEAR(rows[t]["out"].get<double>(), above / below, 1e-12);
  }
  EXPECT_EQ(rows[0]["out"], 1.0);
  EXPECT_LT(values["states_difference"].get<double>(), 1e-5);
  EXPECT_EQ(values["continues_to_the_same_bits"], true);
  EXPECT_THAT(text, HasSubstr("the same bits"));
}

TEST_F(LinearAttentionLesson, WeightsUnderACausalMaskGiveTheSameOutputs) {
  constexpr std::array<std::array<double, 2>, 4> kKeys{{{1, -1}, {0, 1}, {2, 0}, {-1, 1}}};
  constexpr std::array<std::array<double, 2>, 4> kQueries{{{1, 0}, {0, 1}, {-1, 0.5}, {1, 1}}};
  for (std::size_t t = 0; t < kKeys.size(); ++t) {
    double sum = 0;
    double out = 0;
    for (std::size_t k = 0; k <= t; ++k) {
      const double weight =
          elu(kQueries[t][0]) * elu(kKeys[k][0]) + elu(kQueries[t][1]) * elu(kKeys[k][1]);
      sum += weight;
      out += weight * static_cast<double>(k + 1);
    }
    EXPECT_NEAR(values["states"][t]["out"].get<double>(), out / sum, 1e-12) << t;
    EXPECT_NEAR(values["causal_out"][0][0][t][0].get<double>(), out / sum, 1e-6) << t;
  }
}

TEST_F(LinearAttentionLesson, ACacheIsLargerFromHalfTheDimensionsOn) {
  EXPECT_EQ(values["equal_length"], 32.5);
  EXPECT_THAT(text, HasSubstr("from 33 tokens on a cache is the larger"));
  for (const json& row : values["bytes"]) {
    EXPECT_EQ(row["state"], 4 * (64 * 64 + 64));
    EXPECT_EQ(row["cache"], 4 * 2 * 64 * row["length"].get<std::int64_t>());
  }
}

TEST_F(LinearAttentionLesson, SoftmaxHoldsEveryPairAndStatesFewerAndFewer) {
  const json& rows = values["recall"];
  for (const std::string store : {"elu+1", "relu", "linear", "delta"}) {
    for (std::size_t i = 1; i < rows.size(); ++i) {
      EXPECT_LE(rows[i][store].get<double>(), rows[i - 1][store].get<double>()) << store;
    }
    EXPECT_LT(rows.back()[store].get<double>(), 0.1) << store;
  }
  for (const json& row : rows) {
    EXPECT_EQ(row["softmax"], 1.0);
    // The lesson's order, from the largest capacity to the smallest.
    EXPECT_GE(row["linear"].get<double>(), row["delta"].get<double>());
    EXPECT_GE(row["delta"].get<double>(), row["relu"].get<double>() - 1e-12);
    EXPECT_GE(row["relu"].get<double>(), row["elu+1"].get<double>());
  }
}

TEST_F(LinearAttentionLesson, TheDeltaRuleReplacesWhatAKeyHad) {
  const json& rows = values["replaced"];
  EXPECT_EQ(rows[0]["delta"], 1.0);
  for (const json& row : rows) {
    EXPECT_GT(row["delta"].get<double>(), row["linear"].get<double>() + 0.2);
    EXPECT_NEAR(row["softmax"].get<double>(), 0.5, 0.2) << "neither value of a key is preferred";
    EXPECT_LT(row["linear"].get<double>(), 0.6);
  }
}

TEST_F(LinearAttentionLesson, TheDeltaRuleFailsAsWhereEveryKeyComesOnce) {
  std::size_t compared = 0;
  for (const json& once : values["recall"]) {
    for (const json& twice : values["replaced"]) {
      if (once["pairs"] != twice["keys"]) continue;
      EXPECT_NEAR(once["delta"].get<double>(), twice["delta"].get<double>(), 0.1) << twice;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 4U);
}

TEST_F(LinearAttentionLesson, DrawsItsThreePanels) {
  const TemporaryFolder folder;
  const auto result = run_command({"lesson", "linear-attention", "--out", folder / "lesson.svg"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(read_text(folder / "lesson.svg"), HasSubstr("Attention through a state"));
}

}  // namespace
}  // namespace heed
