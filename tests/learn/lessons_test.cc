// Every number that the tutorials print for a repeatable demonstration, at their precision. Numbers
// that they do not print come from PyTorch or NumPy.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/command.h"

namespace heed { namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing_support::run_command;

class Lesson {
 public:
  explicit Lesson(const std::string& name)
      : text_(run_command({"lesson", name}).out),
        values_(json::parse(run_command({"lesson", name, "--json"}).out)) {}

  const std::string& text() const { return text_; }
  const json& operator[](const char* name) const { return values_.at(name); }

  // Returns the numbers of a recorded value in order, with `decimals` decimals, separated by
  // spaces.
  std::string numbers(const char* name, int decimals) const {
    return flat(values_.at(name), decimals);
  }

 private:
  static std::string flat(const json& value, int decimals) {
    if (value.is_string()) return value;
    if (!value.is_array()) return fmt::format("{:.{}f}", value.get<double>(), decimals);
    std::string text;
    for (const json& element : value) text += (text.empty() ? "" : " ") + flat(element, decimals);
    return text;
  }

  std::string text_;
  json values_;
};

TEST(SoftmaxLesson, ByHand) {
  const Lesson lesson("softmax");
  EXPECT_EQ(lesson.numbers("by_hand_exp", 4), "2.7183 7.3891 20.0855");
  EXPECT_EQ(lesson.numbers("by_hand_sum", 4), "30.1929");
  EXPECT_EQ(lesson.numbers("by_hand_weights", 4), "0.0900 0.2447 0.6652");
  EXPECT_THAT(lesson.text(), HasSubstr("[  2.7183   7.3891  20.0855]"));
  EXPECT_THAT(lesson.text(), HasSubstr("add up to 30.1929"));
  EXPECT_THAT(lesson.text(), HasSubstr("[ 0.0900  0.2447  0.6652]"));
}

TEST(SoftmaxLesson, OverflowAndItsCure) {
  const Lesson lesson("softmax");
  EXPECT_EQ(lesson["large_exp"], json({"inf", "inf", "inf"}));
  EXPECT_EQ(lesson["large_naive"], json({"nan", "nan", "nan"}));
  EXPECT_EQ(lesson.numbers("large_shifted", 0), "-2 -1 0");
  EXPECT_EQ(lesson.numbers("large_shifted_exp", 8), "0.13533528 0.36787944 1.00000000");
  EXPECT_EQ(lesson.numbers("large_stable", 8), "0.09003057 0.24472847 0.66524096");
  EXPECT_EQ(lesson["large_stable_sum"].get<double>(), 0.9999999999999999);
  EXPECT_THAT(lesson.text(), HasSubstr("[ nan  nan  nan]"));
  EXPECT_THAT(lesson.text(), HasSubstr("[ 0.09003057  0.24472847  0.66524096]"));
  EXPECT_THAT(lesson.text(), HasSubstr("Their sum is 0.9999999999999999."));
}

TEST(SoftmaxLesson, BothWaysAndAHiddenScore) {
  const Lesson lesson("softmax");
  EXPECT_EQ(lesson.numbers("small_shifted", 1), "0.0 -1.0 -1.9");
  EXPECT_EQ(lesson.numbers("small_shifted_exp", 8), "1.00000000 0.36787944 0.14956862");
  EXPECT_EQ(lesson.numbers("small_naive", 8), "0.65900114 0.24243297 0.09856589");
  EXPECT_EQ(lesson.numbers("small_stable", 8), "0.65900114 0.24243297 0.09856589");
  EXPECT_EQ(lesson["hidden_scores"], json({2.0, 1.0, "-inf"}));
  EXPECT_EQ(lesson.numbers("hidden_weights", 2), "0.73 0.27 0.00");
  EXPECT_EQ(lesson["hidden_weights"][2], 0);
  EXPECT_THAT(lesson.text(), HasSubstr("[ 0.65900114  0.24243297  0.09856589]"));
  EXPECT_THAT(lesson.text(), HasSubstr("[ 0.73  0.27  0.00]"));
}

TEST(QkvLesson, LooksUpSoftlyAndSharply) {
  const Lesson lesson("qkv");
  EXPECT_EQ(lesson.numbers("soft_scores", 1), "1.0 1.0 1.3");
  // e = 2.71828, e^1.3 = 3.66930: 2.71828 / 9.10586 and 3.66930 / 9.10586.
  EXPECT_EQ(lesson.numbers("soft_weights", 4), "0.2985 0.2985 0.4030");
  EXPECT_EQ(lesson.numbers("soft_out", 2), "35.07");
  EXPECT_EQ(lesson.numbers("sharp_weights", 4), "0.0000 0.9820 0.0180");
  EXPECT_GT(lesson["sentence_weights"][0][1], 0.8);
  EXPECT_THAT(lesson.text(), HasSubstr("What am I looking for?"));
}

TEST(EmbeddingsLesson, AreNumpys) {
  const Lesson lesson("embeddings");
  EXPECT_EQ(
      lesson["embeddings"],
      json({{0.5, -0.14, 0.65, 1.52}, {-0.23, -0.23, 1.58, 0.77}, {-0.47, 0.54, -0.46, -0.47}}));
  EXPECT_THAT(lesson.text(), HasSubstr("  The [ 0.50 -0.14  0.65  1.52]\n"
                                       "  cat [-0.23 -0.23  1.58  0.77]\n"
                                       "  sat [-0.47  0.54 -0.46 -0.47]\n"));
}

TEST(FromScratchLesson, HasTheTutorialsMatrices) {
  const Lesson lesson("from-scratch");
  EXPECT_EQ(lesson["x_shape"], json({3, 4}));
  EXPECT_EQ(lesson["query_shape"], json({3, 2}));
  EXPECT_EQ(lesson["out_shape"], json({3, 2}));
  EXPECT_EQ(lesson.numbers("scores", 2), "0.05 0.20 0.40 0.48 0.72 -0.05 0.18 0.22 -0.18");
  EXPECT_EQ(lesson.numbers("weights", 3), "0.278 0.324 0.397 0.348 0.445 0.206 0.365 0.381 0.255");
  EXPECT_EQ(lesson.numbers("row_sums", 3), "1.000 1.000 1.000");
  EXPECT_EQ(lesson.numbers("out", 8),
            "0.20395144 -0.45437151 0.33415343 -0.94762477 0.30369492 -0.82292226");
  EXPECT_THAT(lesson.text(), HasSubstr("  [ 0.05  0.20  0.40]\n  [ 0.48  0.72 -0.05]\n"));
  EXPECT_THAT(lesson.text(), HasSubstr("  [ 0.278  0.324  0.397]\n  [ 0.348  0.445  0.206]\n"));
}

TEST(CausalLesson, HasTheTutorialsMatrices) {
  const Lesson lesson("causal");
  EXPECT_EQ(lesson.numbers("scores", 2),
            "-1.08 -0.42 0.22 0.84 -1.26 -0.68 0.22 1.97 0.11 0.11 -0.01 -0.41 2.12 0.79 -0.44 "
            "-1.52");
  EXPECT_EQ(lesson.numbers("weights", 3),
            "1.000 0.000 0.000 0.000 0.359 0.641 0.000 0.000 0.348 0.345 0.307 0.000 0.731 0.193 "
            "0.057 0.019");
  EXPECT_EQ(lesson.numbers("out", 8),
            "-1.00401066 -0.66300562 -0.64235441 -1.01024800 -0.35117469 -0.54688063 -0.80265768 "
            "-0.64731790");
  EXPECT_THAT(lesson.text(),
              HasSubstr("  [-1.08000000e+00 -1.00000000e+09 -1.00000000e+09 -9.99999999e+08]\n"
                        "  [-1.26000000e+00 -6.80000000e-01 -1.00000000e+09 -9.99999998e+08]\n"
                        "  [ 1.10000000e-01  1.10000000e-01 -1.00000000e-02 -1.00000000e+09]\n"
                        "  [ 2.12000000e+00  7.90000000e-01 -4.40000000e-01 -1.52000000e+00]\n"));
}

TEST(CausalLesson, InfinityDiffersOnlyInARowThatSeesNothing) {
  const Lesson lesson("causal");
  EXPECT_EQ(lesson["infinity_weights"], lesson["weights"]);
  EXPECT_EQ(lesson["difference"], 0);
  EXPECT_EQ(lesson["infinity_scores"][0][1], "-inf");
  EXPECT_EQ(lesson["blind_infinity_weights"][0], json({0.0, 0.0, 0.0, 0.0}));
  EXPECT_EQ(lesson["blind_infinity_out"][0], json({0.0, 0.0}));
  for (std::size_t row = 1; row < 4; ++row) {
    EXPECT_EQ(lesson["blind_number_weights"][row], lesson["blind_infinity_weights"][row]);
  }
  for (std::size_t column = 0; column < 4; ++column) {
    // Scores of this size have lost the digits after the seventh.
    EXPECT_NEAR(lesson["blind_number_weights"][0][column].get<double>(),
                lesson["unmasked_weights"][0][0][0][column].get<double>(), 1e-6);
  }
}

TEST(ByHandLesson, HasEveryStep) {
  const Lesson lesson("by-hand");
  EXPECT_EQ(lesson.numbers("scores", 0), "1 0 1 0 1 1 1 1 2");
  EXPECT_EQ(lesson.numbers("root", 4), "1.4142");
  EXPECT_EQ(lesson.numbers("scaled", 4),
            "0.7071 0.0000 0.7071 0.0000 0.7071 0.7071 0.7071 0.7071 1.4142");
  EXPECT_EQ(lesson.numbers("masked", 4),
            "0.7071 -inf -inf 0.0000 0.7071 -inf 0.7071 0.7071 1.4142");
  EXPECT_EQ(lesson.numbers("exponentials", 3),
            "2.028 0.000 0.000 1.000 2.028 0.000 2.028 2.028 4.113");
  EXPECT_NEAR(lesson["sums"][2].get<double>(), 8.169, 1e-3);
  EXPECT_EQ(lesson.numbers("weights", 4),
            "1.0000 0.0000 0.0000 0.3302 0.6698 0.0000 0.2483 0.2483 0.5035");
  EXPECT_EQ(lesson.numbers("row_sums", 4), "1.0000 1.0000 1.0000");
  EXPECT_EQ(lesson.numbers("out", 4), "1.0000 0.0000 0.3302 0.6698 0.7517 0.7517");
  EXPECT_THAT(lesson.text(), HasSubstr("√d = √2 = 1.4142"));
  EXPECT_THAT(lesson.text(), HasSubstr("  [ 0.7071    -inf    -inf]\n"));
  EXPECT_THAT(lesson.text(), HasSubstr("  [ 0.2483  0.2483  0.5035]\n"));
}

TEST(RunningExampleLesson, IsPyTorchs) {
  const Lesson lesson("running-example");
  EXPECT_EQ(lesson["ids"], json({0, 1, 2, 3}));
  EXPECT_EQ(lesson["ids_shape"], json({1, 4}));
  EXPECT_EQ(lesson["x_shape"], json({1, 4, 4}));
  EXPECT_EQ(lesson["out_shape"], json({1, 4, 4}));
  EXPECT_EQ(lesson.numbers("weights", 4),
            "1.0000 0.0000 0.0000 0.0000 0.2526 0.7474 0.0000 0.0000 0.3018 0.2972 0.4011 0.0000 "
            "0.2149 0.3615 0.1914 0.2321");
  EXPECT_EQ(lesson.numbers("row_sums", 4), "1.0000 1.0000 1.0000 1.0000");
  EXPECT_EQ(lesson.numbers("out", 4),
            "-0.0357 -0.2523 -0.0872 0.2838 -0.3054 -0.2636 0.1923 -0.2753 -0.1135 -0.1594 0.0903 "
            "-0.0089 -0.1461 -0.0029 0.0723 -0.1396");
  EXPECT_EQ(lesson["embedding_parameters"], 16);
  EXPECT_EQ(lesson["attention_parameters"], 64);
  EXPECT_EQ(lesson["parameters"], 80);
  EXPECT_THAT(lesson.text(), HasSubstr("  !    [ 0.2149  0.3615  0.1914  0.2321]\n"));
  EXPECT_THAT(lesson.text(), HasSubstr(" 80\n"));
}

TEST(SimpleAttentionLesson, IsPyTorchs) {
  const Lesson lesson("simple-attention");
  EXPECT_EQ(lesson["input_shape"], json({1, 4, 8}));
  EXPECT_EQ(lesson["weights_shape"], json({1, 4, 4}));
  EXPECT_EQ(lesson["out_shape"], json({1, 4, 8}));
  EXPECT_EQ(lesson.numbers("weights", 4),
            "0.1942 0.4102 0.3242 0.0714 0.0408 0.6555 0.0864 0.2173 0.1041 0.2057 0.1824 0.5078 "
            "0.1926 0.1803 0.1955 0.4316");
  EXPECT_EQ(lesson.numbers("row_sums", 4), "1.0000 1.0000 1.0000 1.0000");
  EXPECT_EQ(lesson.numbers("causal_weights", 4),
            "1.0000 0.0000 0.0000 0.0000 0.0585 0.9415 0.0000 0.0000 0.2114 0.4180 0.3706 0.0000 "
            "0.1926 0.1803 0.1955 0.4316");
  EXPECT_THAT(lesson.numbers("out", 4),
              testing::StartsWith("0.2667 0.2371 -0.0554 0.1298 0.3541 -0.1906 -0.6448 -0.0085 "));
  EXPECT_THAT(lesson.numbers("causal_out", 4),
              HasSubstr(" -0.0775 0.5433 0.1831 0.4320 0.5616 -0.6157 -2.1390 -0.6321 "));
  EXPECT_THAT(lesson.text(), HasSubstr("  [ 0.1942  0.4102  0.3242  0.0714]\n"));
  EXPECT_THAT(lesson.text(), HasSubstr("  [ 0.0585  0.9415  0.0000  0.0000]\n"));
}

TEST(HeadsLesson, IsPyTorchsAfterTheTutorialsDraws) {
  const Lesson lesson("heads");
  EXPECT_THAT(lesson.numbers("one_head", 2),
              testing::StartsWith("0.11 0.14 0.08 0.12 0.09 0.17 0.15 0.14 "));
}

TEST(ShortSequenceLesson, IsPyTorchs) {
  const Lesson lesson("short-sequence");
  EXPECT_EQ(lesson["input_shape"], json({1, 10, 64}));
  EXPECT_EQ(lesson["out_shape"], json({1, 10, 64}));
  EXPECT_EQ(lesson["weights_shape"], json({1, 4, 10, 10}));
  EXPECT_EQ(lesson.numbers("mean", 3),
            "0.172 0.229 0.130 0.132 0.156 0.182 0.000 0.000 0.000 0.000");
  for (std::size_t key = 6; key < 10; ++key) EXPECT_EQ(lesson["mean"][key], 0);
  EXPECT_THAT(lesson.numbers("heads", 4), testing::StartsWith("0.2378 0.1784 0.1258 0.1308 "));
  EXPECT_THAT(lesson.numbers("out", 4),
              testing::StartsWith("-0.2113 -0.5596 0.2621 0.1975 -0.2564 -0.2134 "));
  EXPECT_THAT(lesson.text(),
              HasSubstr("[ 0.172  0.229  0.130  0.132  0.156  0.182  0.000  0.000 "));
}

}  // namespace
}  // namespace heed
