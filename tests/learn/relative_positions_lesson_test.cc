// The lesson on relative positions: compares its numbers with sines, cosines and tables read by
// plain loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "heed/attention/position.h"
#include "heed/core/random.h"
#include "heed/nn/functional.h"
#include "support/command.h"

namespace heed { namespace {

using nlohmann::json;
using testing::DoubleNear;
using testing::Each;
using testing::HasSubstr;
using testing::Pointwise;
using testing_support::read_text;
using testing_support::run_command;
using testing_support::TemporaryFolder;
using Numbers = std::vector<double>;

constexpr int kWidth = 32;
constexpr int kTrained = 128;
constexpr int kLongest = 1024;

class RelativePositionsLesson : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const TemporaryFolder folder;
    const auto result =
        run_command({"lesson", "relative-positions", "--out", folder / "lesson.json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    text = result.out;
    values = json::parse(read_text(folder / "lesson.json"));
  }

  static json row(const char* table, const std::string& positions) {
    for (const json& candidate : values[table]) {
      if (candidate["positions"] == positions) return candidate;
    }
    ADD_FAILURE() << table << " has no " << positions;
    return {};
  }

  // Returns the scores of the last query of kLongest, by distance.
  static Numbers scores(const std::string& positions) {
    return row("beyond", positions)["scores"].get<Numbers>();
  }

  inline static std::string text;
  inline static json values;
};

double frequency(int pair) { return std::pow(10000.0, -2.0 * pair / kWidth); }

double sum_of_cosines(int distance) {
  double sum = 0;
  for (int i = 0; i < kWidth / 2; ++i) sum += std::cos(distance * frequency(i));
  return sum;
}

// The causal buckets of T5's code for 32 buckets and distances up to 128, in float as there.
std::size_t t5_bucket(int distance) {
  if (distance < 16) return static_cast<std::size_t>(distance);
  const float ratio = std::log(static_cast<float>(distance) / 16) / std::log(8.0F);
  return static_cast<std::size_t>(std::min(31, 16 + static_cast<int>(ratio * 16)));
}

Numbers drawn(TorchGenerator& generator, const Shape& shape) {
  const auto tensor = generator.randn<double>(shape);
  return {tensor.elements().begin(), tensor.elements().end()};
}

Numbers by_distance(int length, auto score) {
  Numbers numbers;
  for (int distance = 0; distance < length; ++distance) numbers.push_back(score(distance));
  return numbers;
}

TEST_F(RelativePositionsLesson, ProductsOfEncodingsAreSumsOfCosines) {
  for (const json& entry : values["sinusoidal_products"]) {
    const double expected = sum_of_cosines(entry["distance"]);
    EXPECT_THAT(entry["products"].get<Numbers>(), Each(DoubleNear(expected, 1e-12)));
    EXPECT_NEAR(entry["formula"], expected, 1e-12);
  }
  EXPECT_EQ(values["sinusoidal_products"].size(), 5U);
  EXPECT_LT(values["product_error"], 1e-12);
  EXPECT_THAT(text, HasSubstr("  3   12.272398   12.272398   12.272398   12.272398 "));
}

TEST_F(RelativePositionsLesson, AStepTurnsEachPair) {
  for (const json& entry : values["rotations"]) {
    const double omega = frequency(entry["pair"]);
    EXPECT_NEAR(entry["angle"], 3 * omega, 1e-12);
    const Numbers expected{std::sin(8 * omega), std::cos(8 * omega)};
    EXPECT_THAT(entry["turned"].get<Numbers>(), Pointwise(DoubleNear(1e-12), expected));
    EXPECT_THAT(entry["there"].get<Numbers>(), Pointwise(DoubleNear(1e-12), expected));
  }
  EXPECT_LT(values["rotation_error"], 1e-12);
}

TEST_F(RelativePositionsLesson, ProjectionsBreakIt) {
  TorchGenerator generator(0);
  const auto layer = attention_init(generator, kWidth, kWidth);
  const auto projected = [](const LinearParameters<float>& linear, int position, int out) {
    double sum = linear.bias.empty() ? 0 : linear.bias(out);
    for (int i = 0; i < kWidth / 2; ++i) {
      sum += linear.weight(out, 2 * i) * std::sin(position * frequency(i));
      sum += linear.weight(out, 2 * i + 1) * std::cos(position * frequency(i));
    }
    return sum;
  };
  Numbers products;
  for (int m = 0; m + 3 < kTrained; ++m) {
    double sum = 0;
    for (int i = 0; i < kWidth; ++i) {
      sum += projected(layer.query, m, i) * projected(layer.key, m + 3, i);
    }
    products.push_back(sum);
  }
  const auto [low, high] = std::minmax_element(products.begin(), products.end());
  EXPECT_NEAR(values["projected"][0], *low, 1e-5);
  EXPECT_NEAR(values["projected"][1], *high, 1e-5);
  EXPECT_GT(*high - *low, 1);
}

TEST_F(RelativePositionsLesson, RotaryProductsByHandDependOnTheDistance) {
  EXPECT_EQ(values["rotary"].size(), 8U);
  for (const json& entry : values["rotary"]) {
    const double distance = entry["n"].get<double>() - entry["m"].get<double>();
    const double expected =
        std::cos(distance) * (1 * 0.3 + 0.5 * 0.8) + std::sin(distance) * (0.5 * 0.3 - 1 * 0.8);
    EXPECT_NEAR(entry["by_hand"], expected, 1e-12) << entry;
    EXPECT_NEAR(entry["by_heed"], expected, 1e-12) << entry;
  }
  EXPECT_LT(values["rotary_error"], 1e-12);
  EXPECT_THAT(text, HasSubstr("   102  100      2 "));
}

TEST_F(RelativePositionsLesson, PairingsAreDifferentFunctions) {
  TorchGenerator generator(0);
  const Numbers query = drawn(generator, {1, 1, 1, kWidth});
  const Numbers key = drawn(generator, {1, 1, 1, kWidth});
  // The query is 5 positions after the key.
  const auto product = [&](std::size_t step, std::size_t apart) {
    double sum = 0;
    for (std::size_t i = 0; i < kWidth / 2; ++i) {
      const std::size_t a = i * step;
      const std::size_t b = a + apart;
      const double angle = -5 * frequency(static_cast<int>(i));
      sum += std::cos(angle) * (query[a] * key[a] + query[b] * key[b]) +
             std::sin(angle) * (query[b] * key[a] - query[a] * key[b]);
    }
    return sum;
  };
  EXPECT_NEAR(values["halves"]["product"], product(1, kWidth / 2), 1e-12);
  EXPECT_NEAR(values["neighbours"]["product"], product(2, 1), 1e-12);
  EXPECT_LT(values["halves"]["change"], 1e-12);
  EXPECT_LT(values["neighbours"]["change"], 1e-12);
  EXPECT_GT(std::abs(product(1, kWidth / 2) - product(2, 1)), 0.1);
}

TEST_F(RelativePositionsLesson, EncodingsAndRotationsAreSumsOfCosines) {
  const double root = std::sqrt(kWidth);
  EXPECT_THAT(scores("sinusoidal"),
              Pointwise(DoubleNear(1e-11), by_distance(kLongest, [&](int distance) {
                          return sum_of_cosines(distance) / root;
                        })));
  TorchGenerator generator(0);
  const Numbers x = drawn(generator, {1, 1, 1, kWidth});
  EXPECT_THAT(scores("rotary"), Pointwise(DoubleNear(1e-11), by_distance(kLongest, [&](int j) {
                                            double sum = 0;
                                            for (std::size_t i = 0; i < kWidth / 2; ++i) {
                                              const double a = x[i];
                                              const double b = x[i + kWidth / 2];
                                              const int pair = static_cast<int>(i);
                                              sum +=
                                                  (a * a + b * b) * std::cos(j * frequency(pair));
                                            }
                                            return sum / root;
                                          })));
}

TEST_F(RelativePositionsLesson, BiasesAreReadByDistance) {
  EXPECT_THAT(scores("alibi"), Pointwise(DoubleNear(1e-12), by_distance(kLongest, [](int distance) {
                                           return -distance / 64.0;
                                         })));
  TorchGenerator for_t5(0);
  const Numbers t5 = drawn(for_t5, {1, 32});
  EXPECT_EQ(scores("t5"),
            by_distance(kLongest, [&](int distance) { return t5[t5_bucket(distance)]; }));
  const auto clip_entry = [](int distance) {
    return static_cast<std::size_t>(32 - std::min(distance, 32));
  };
  TorchGenerator for_clip(0);
  const Numbers clip = drawn(for_clip, {1, 65});
  EXPECT_EQ(scores("clip"),
            by_distance(kLongest, [&](int distance) { return clip[clip_entry(distance)]; }));
  TorchGenerator for_shaw(0);
  const Numbers query = drawn(for_shaw, {1, kWidth});
  const Numbers table = drawn(for_shaw, {65, kWidth});
  EXPECT_THAT(scores("shaw"),
              Pointwise(DoubleNear(1e-12), by_distance(kLongest, [&](int distance) {
                          const auto begin = table.begin() + static_cast<std::ptrdiff_t>(
                                                                 clip_entry(distance) * kWidth);
                          return std::inner_product(query.begin(), query.end(), begin, 0.0) /
                                 std::sqrt(kWidth);
                        })));
}

TEST_F(RelativePositionsLesson, OnlyLearnedEncodingsDependOnThePlace) {
  for (const json& entry : values["distances"]) {
    const std::string positions = entry["positions"];
    const double change = entry["change_by_place"];
    const bool is_rounded = positions == "sinusoidal" || positions == "rotary";
    if (positions == "learned") {
      EXPECT_GT(change, 1);
    } else {
      EXPECT_LE(change, is_rounded ? 1e-12 : 0) << positions;
    }
    const auto here = entry["scores"].get<Numbers>();
    ASSERT_EQ(here.size(), std::size_t{kTrained}) << positions;
    const auto last = scores(positions);
    EXPECT_THAT(here, Pointwise(DoubleNear(1e-11), Numbers(last.begin(), last.begin() + kTrained)))
        << positions;
  }
  EXPECT_EQ(values["distances"].size(), 7U);
}

TEST_F(RelativePositionsLesson, LearnedEncodingsEnd) {
  TorchGenerator generator(0);
  const auto table = learned_encoding<double>(generator, kTrained, kWidth, 1);
  const auto found = scores("learned");
  ASSERT_EQ(found.size(), std::size_t{kTrained});
  for (int distance = 0; distance < kTrained; ++distance) {
    double sum = 0;
    for (int i = 0; i < kWidth; ++i) {
      sum += table(kTrained - 1, i) * table(kTrained - 1 - distance, i);
    }
    EXPECT_NEAR(found[static_cast<std::size_t>(distance)], sum / std::sqrt(kWidth), 1e-12);
  }
  EXPECT_THAT(values["refusal"].get<std::string>(), HasSubstr("129 positions"));
  EXPECT_THAT(text, HasSubstr("- learned: position 128 has no vector."));
}

TEST_F(RelativePositionsLesson, TablesSaturate) {
  std::vector<int> expected;
  for (int distance = 0; distance <= 128; ++distance) {
    if (distance == 0 || t5_bucket(distance) != t5_bucket(distance - 1)) {
      expected.push_back(distance);
    }
  }
  EXPECT_EQ(values["t5_beginnings"].get<std::vector<int>>(), expected);
  EXPECT_LT(expected.back(), kTrained);
  std::vector<int> to_32(33);
  std::iota(to_32.begin(), to_32.end(), 0);
  EXPECT_EQ(values["clip_beginnings"].get<std::vector<int>>(), to_32);
  for (const char* positions : {"t5", "clip", "shaw"}) {
    const auto found = scores(positions);
    EXPECT_THAT(Numbers(found.begin() + kTrained - 1, found.end()), Each(found.back()))
        << positions;
  }
}

TEST_F(RelativePositionsLesson, SlowPairsMeetNewAngles) {
  const auto turns = [](int pair, double distance) {
    return distance * frequency(pair) / (2 * std::numbers::pi);
  };
  const json& found = values["turns"];
  const int first = found["first_slow"];
  EXPECT_LT(turns(first, 127), 1);
  EXPECT_GE(turns(first - 1, 127), 1);
  EXPECT_NEAR(found["trained"], turns(first, 127), 1e-12);
  EXPECT_NEAR(found["longest"], turns(first, 1023), 1e-12);
  EXPECT_NEAR(found["interpolated"], turns(first, 1023.0 / 8), 1e-12);
  EXPECT_THAT(text, HasSubstr("10 of the 16 pairs"));
  EXPECT_EQ(16 - first, 10);
}

TEST_F(RelativePositionsLesson, AlibiWeighsDistancesByPowers) {
  const Numbers slopes{1.0 / 4, 1.0 / 16, 1.0 / 64, 1.0 / 256};
  EXPECT_EQ(values["alibi_slopes"].get<Numbers>(), slopes);
  Numbers expected;
  for (const double slope : slopes) {
    expected.push_back((1 - std::exp(-128 * slope)) / (1 - std::exp(-1024 * slope)));
  }
  EXPECT_THAT(values["alibi_near"].get<Numbers>(), Pointwise(DoubleNear(1e-9), expected));
}

TEST_F(RelativePositionsLesson, CountsParameters) {
  const auto expect = [](const char* positions, int trained, int longest) {
    EXPECT_EQ(row("parameters", positions)["trained"], trained) << positions;
    EXPECT_EQ(row("parameters", positions)["longest"], longest) << positions;
  };
  constexpr int kLayers = 2;
  constexpr int kHeads = 4;
  constexpr int kModel = 64;
  expect("learned", kTrained * kModel, kLongest * kModel);
  expect("t5", kLayers * kHeads * 32, kLayers * kHeads * 32);
  expect("clip", kLayers * kHeads * 65, kLayers * kHeads * 65);
  expect("shaw", kLayers * 2 * 65 * kModel / kHeads, kLayers * 2 * 65 * kModel / kHeads);
  for (const char* nothing : {"none", "sinusoidal", "rotary", "alibi"}) expect(nothing, 0, 0);
  EXPECT_EQ(values["parameters"].size(), 8U);
  EXPECT_THAT(text, HasSubstr("with 2 layers of\n4 heads and width 64"));
}

TEST_F(RelativePositionsLesson, EndsWithWhatMeasuresThem) {
  EXPECT_THAT(text, HasSubstr("`heed compare"));
  EXPECT_EQ(run_command({"compare", "positions", "--help"}).exit_code, 0);
}

}  // namespace
}  // namespace heed
