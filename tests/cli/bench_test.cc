#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/mask.h"
#include "support/command.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::run_command;

using Arguments = std::vector<std::string>;

// Returns the same small call except for `options`; tests run it often.
Arguments forward(const Arguments& options) {
  Arguments all{"bench", "forward", "--heads", "2", "--head-dim", "8", "--repeat", "2"};
  all.insert(all.end(), options.begin(), options.end());
  return all;
}

nlohmann::json json_of(Arguments arguments) {
  arguments.emplace_back("--json");
  const auto result = run_command(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out);
}

nlohmann::json case_of(const Arguments& options) {
  return json_of(forward(options)).at("results").at(0);
}

void expect_usage_error(const Arguments& options, const std::string& message) {
  const auto result = run_command(forward(options));
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, AllOf(HasSubstr("heed bench forward: "), HasSubstr(message)));
}

TEST(BenchForward, PrintsOneJsonObject) {
  const auto json = json_of(forward({"--seq", "5", "--threads", "1"}));
  EXPECT_EQ(json.at("machine").at("attention_target"), attention_target());
  EXPECT_GE(json.at("machine").at("processors").get<int>(), 1);
  ASSERT_EQ(json.at("results").size(), 1U);
  const auto& result = json.at("results").at(0);
  const nlohmann::json expected{
      {"path", "fused"},     {"dtype", "float32"}, {"layout", "bhtd"}, {"batch", 1},
      {"heads", 2},          {"kv_heads", 2},      {"seq", 5},         {"kv_seq", 5},
      {"head_dim", 8},       {"value_dim", 8},     {"mask", "none"},   {"with", "none"},
      {"visible_pairs", 50}, {"threads", 1}};
  EXPECT_EQ(result.at("case"), expected);
  for (const char* name :
       {"median_ms", "best_ms", "gflops", "peak_gflops", "peak_share_median", "peak_share_best"}) {
    EXPECT_GT(result.at(name).get<double>(), 0) << name;
  }
  EXPECT_LE(result.at("best_ms"), result.at("quartiles_ms").at(0));
  EXPECT_LE(result.at("quartiles_ms").at(0), result.at("median_ms"));
  EXPECT_LE(result.at("median_ms"), result.at("quartiles_ms").at(1));
  EXPECT_EQ(result.at("repetitions"), 2);
}

TEST(BenchForward, RatesFollowFromTimes) {
  const auto result = case_of({"--seq", "7", "--kv-seq", "9", "--value-dim", "3"});
  const double operations = 2 * 2 * 7 * 9 * (8 + 3);
  const double seconds = result.at("median_ms").get<double>() / 1e3;
  const double gflops = result.at("gflops");
  EXPECT_NEAR(gflops, operations / seconds / 1e9, 1e-9 * gflops);
  const double share = result.at("peak_share_median");
  EXPECT_NEAR(share, gflops / result.at("peak_gflops").get<double>(), 1e-9 * share);
}

TEST(BenchForward, TakesAMaskByName) {
  const std::string text = "bigbird(4, 1, 1, 2, 3)";
  const auto result =
      case_of({"--seq", "33", "--batch", "2", "--causal", "square", "--mask", text});
  const Mask mask =
      causal() & bigbird({.block = 4, .window = 1, .global = 1, .random = 2, .seed = 3});
  EXPECT_EQ(result.at("case").at("mask"), mask.description());
  EXPECT_EQ(result.at("case").at("visible_pairs"), count_visible(mask, {2, 2, 33, 33}));
  const auto backward = json_of({"bench", "backward", "--heads", "2", "--head-dim", "8", "--repeat",
                                 "1", "--seq", "9", "--mask", "streaming(1, 2)"});
  EXPECT_EQ(backward.at("results").at(0).at("case").at("mask"), "streaming(1, 2)");
  expect_usage_error({"--mask", "wide"}, "--mask: there is no mask 'wide'");
  expect_usage_error({"--seq", "5", "--mask", "documents(0, 4)"}, "the last boundary is 4");
}

TEST(BenchForward, CountsVisiblePairsOnly) {
  struct Masked {
    std::int64_t q_len;
    std::int64_t kv_len;
    Arguments options;
    Mask mask;
  };
  const std::vector<Masked> masks{
      {5, 5, {"--causal", "square"}, causal()},
      {5, 7, {"--causal", "top_left"}, causal_top_left()},
      {7, 5, {"--causal", "bottom_right"}, causal_bottom_right()},
      {7, 7, {"--mask", "sliding_window(2, 1)"}, sliding_window(2, 1)},
      {7, 7, {"--mask", "sliding_window(unbounded, 0)"}, sliding_window(kUnbounded, 0)},
      {1,
       1,
       {"--mask", "sliding_window(unbounded, unbounded)"},
       sliding_window(kUnbounded, kUnbounded)},
      {3,
       11,
       {"--causal", "bottom_right", "--mask", "sliding_window(4, unbounded, bottom_right)"},
       causal_bottom_right() & sliding_window(4, kUnbounded, Alignment::bottom_right())},
      {11,
       3,
       {"--causal", "top_left", "--mask", "sliding_window(1, 3, top_left)"},
       causal_top_left() & sliding_window(1, 3, Alignment::top_left())}};
  for (const Masked& masked : masks) {
    Arguments options{"--seq", std::to_string(masked.q_len), "--kv-seq",
                      std::to_string(masked.kv_len)};
    options.insert(options.end(), masked.options.begin(), masked.options.end());
    const auto visible = materialize_allow(
        masked.mask, {.num_heads = 2, .q_len = masked.q_len, .kv_len = masked.kv_len});
    const auto pairs = std::count(visible.elements().begin(), visible.elements().end(), true);
    const auto described = case_of(options).at("case");
    EXPECT_EQ(described.at("visible_pairs"), pairs) << masked.mask.description();
    EXPECT_EQ(described.at("mask"), masked.mask.description());
  }
}

TEST(BenchForward, ListsMakeEveryCombination) {
  const auto results =
      json_of(forward({"--seq", "1,17", "--causal", "none,square", "--layout", "bhtd,bthd",
                       "--path", "fused,reference", "--kv-heads", "1,2"}))
          .at("results");
  std::set<std::string> cases;
  for (const auto& result : results) cases.insert(result.at("case").dump());
  EXPECT_EQ(results.size(), 32U);
  EXPECT_EQ(cases.size(), 32U);
}

TEST(BenchForward, CasesThatDifferInOneOptionTakeTurns) {
  const Arguments options{"--seq", "3,5", "--dtype", "float32,float16", "--in-turn", "dtype"};
  const auto results = json_of(forward(options)).at("results");
  ASSERT_EQ(results.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto& one = results.at(i);
    EXPECT_EQ(one.at("case").at("seq"), i < 2 ? 3 : 5) << i;
    EXPECT_EQ(one.at("case").at("dtype"), i % 2 == 0 ? "float32" : "float16") << i;
    EXPECT_GT(one.at("rate_over_first"), 0.0) << i;
  }
  EXPECT_EQ(results.at(0).at("rate_over_first"), 1.0);
  EXPECT_EQ(results.at(2).at("rate_over_first"), 1.0);
  EXPECT_THAT(run_command(forward(options)).out, HasSubstr("best share  of first\n"));
}

TEST(BenchForward, MeasuresEachOptionOnTheWayBackToo) {
  const std::string all =
      "none,softcap,score-mod,alibi,bias,sinks,dropout,clip,t5,shaw-keys,shaw,head-windows,exact";
  const Arguments options{"--seq", "3", "--kv-seq", "5", "--with", all};
  Arguments backward = forward(options);
  backward[1] = "backward";
  for (const Arguments& arguments : {forward(options), backward}) {
    std::string names;
    const nlohmann::json measured = json_of(arguments);
    for (const auto& result : measured.at("results")) {
      names += result.at("case").at("with").get<std::string>() + ' ';
    }
    EXPECT_EQ(names,
              "none softcap score-mod alibi bias sinks dropout clip t5 shaw-keys shaw head-windows "
              "exact ");
  }
}

TEST(BenchForward, WhatIsNotGivenIsAsLargeAsItsCounterpart) {
  const auto json = json_of({"bench", "forward", "--heads", "1,3", "--seq", "2,5", "--head-dim",
                             "4,6", "--repeat", "1", "--batch", "2"});
  for (const auto& result : json.at("results")) {
    const auto& described = result.at("case");
    EXPECT_EQ(described.at("kv_heads"), described.at("heads"));
    EXPECT_EQ(described.at("kv_seq"), described.at("seq"));
    EXPECT_EQ(described.at("value_dim"), described.at("head_dim"));
    EXPECT_EQ(described.at("batch"), 2);
  }
}

TEST(BenchForward, TheReferenceTakesDoubleToo) {
  const auto results =
      json_of(forward({"--path", "reference", "--dtype", "float32,float64", "--seq", "9"}))
          .at("results");
  ASSERT_EQ(results.size(), 2U);
  EXPECT_EQ(results[1].at("case").at("dtype"), "float64");
  EXPECT_EQ(results[1].at("peak_gflops").get<double>(),
            results[0].at("peak_gflops").get<double>() / 2);
}

TEST(BenchForward, TheKernelsTakeHalfPrecisionAndDouble) {
  const auto results =
      json_of(forward({"--dtype", "float16,bfloat16,float64", "--layout", "bthd", "--seq", "9"}))
          .at("results");
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].at("case").at("dtype"), "float16");
  EXPECT_EQ(results[1].at("case").at("dtype"), "bfloat16");
  EXPECT_EQ(results[2].at("case").at("dtype"), "float64");
}

TEST(BenchForward, PrintsATableWithWhatIsCommonAboveIt) {
  const auto result = run_command(forward({"--seq", "3,4", "--threads", "1"}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("heed "), HasSubstr("batch=1, heads=2, kv_heads=2,\nhead_dim=8"),
                    HasSubstr("threads=1\n\n"), HasSubstr("seq  kv_seq  visible_pairs  median ms"),
                    HasSubstr("\n  3       3             18  "),
                    HasSubstr("\n  4       4             32  ")));
}

TEST(BenchForward, ArgumentsThatMakeNoSenseAreRefused) {
  expect_usage_error({"--seq", "0"}, "--seq: Value 0 not in range");
  expect_usage_error({"--seq", "-3"}, "--seq");
  expect_usage_error({"--seq", "many"}, "many");
  expect_usage_error({"--seq", "4", "5"}, "not expected: 5");
  expect_usage_error({"--threads", "0"}, "--threads");
  expect_usage_error({"--repeat", "0"}, "--repeat");
  expect_usage_error({"--path", "magic"}, "magic");
  expect_usage_error({"--dtype", "int8"}, "int8");
  expect_usage_error({"--layout", "tbhd"}, "tbhd");
  expect_usage_error({"--causal", "left"}, "left");
  expect_usage_error({"--kv-heads", "3"}, "--heads is 2, expected a multiple of --kv-heads, 3");
  expect_usage_error({"--kv-seq", "3", "--causal", "square"}, "name the alignment");
  expect_usage_error({"--kv-seq", "3", "--mask", "sliding_window(1, 1)"},
                     "sliding_window: q_len is ");
  expect_usage_error({"--dtype", "float16", "--path", "reference"}, "float32 and float64, not");
  expect_usage_error({"--in-turn", "seq"}, "--in-turn: 'seq' is none of path, ");
  expect_usage_error({"--in-turn", "dtype"}, "--dtype has one value, 'float32', expected several");
}

TEST(BenchForward, ALaterCaseThatIsRefusedIsRefusedBeforeAnyIsMeasured) {
  expect_usage_error({"--seq", "4,5", "--kv-seq", "4", "--causal", "square"}, "q_len is 5");
}

TEST(BenchForward, MoreMemoryThanThereIsIsAnErrorOfTheMachine) {
  const auto result = run_command({"bench", "forward", "--batch", "1048576", "--heads", "1048576",
                                   "--seq", "1048576", "--head-dim", "65536"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("heed bench forward: "));
}

TEST(Bench, AnUnknownMeasurementIsNamedWithTheKnownOnes) {
  const auto result = run_command({"bench", "sideways"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("no verb 'sideways'; the verbs of 'bench' are forward, "));
  EXPECT_EQ(run_command({"bench"}).exit_code, 2);
}

TEST(Bench, HelpFitsEightyColumns) {
  for (const std::string verb :
       {"forward", "backward", "decode", "linear", "model", "seq2seq", "storage", "distributed"}) {
    std::istringstream help(run_command({"bench", verb, "--help"}).out);
    for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 84U) << line;
  }
}

// Counts ten operations for every pair and dimension if both dimensions are equal.
TEST(BenchBackward, CountsFiveProducts) {
  for (const std::string dtype : {"float32", "float64"}) {
    const auto json = json_of({"bench", "backward", "--heads", "2", "--seq", "12", "--head-dim",
                               "8", "--value-dim", "4", "--causal", "square", "--repeat", "2",
                               "--dtype", dtype, "--path", "reference"});
    const auto& result = json.at("results").at(0);
    EXPECT_EQ(result.at("case").at("visible_pairs"), 2 * 78);
    const double operations =
        result.at("gflops").get<double>() * result.at("median_ms").get<double>() * 1e6;
    EXPECT_NEAR(operations, 2 * 78 * (6 * 8 + 4 * 4), 1e-6);
  }
}

TEST(BenchBackward, MeasuresTheFusedKernels) {
  const auto json = json_of({"bench", "backward", "--seq", "12,49", "--repeat", "2"});
  EXPECT_EQ(json.at("results").size(), 2U);
  EXPECT_EQ(json.at("results").at(1).at("case").at("path"), "fused");
}

TEST(BenchLinear, ComparesWithSoftmaxAttention) {
  const auto json = json_of({"bench", "linear", "--seq", "9", "--heads", "2", "--head-dim", "8",
                             "--repeat", "2", "--threads", "1"});
  const auto& results = json.at("results");
  ASSERT_EQ(results.size(), 10U);
  std::vector<std::string> methods;
  for (const auto& result : results) {
    const auto& named = result.at("case");
    methods.push_back(named.at("method"));
    EXPECT_GT(result.at("median_ms").get<double>(), 0);
    if (methods.back() == "softmax") {
      EXPECT_EQ(named.at("error"), 0);
    } else if (methods.back() == "elu+1" || methods.back() == "relu") {
      EXPECT_GT(named.at("error"), 0.01);
      EXPECT_LT(named.at("error"), 3);
    } else {
      EXPECT_TRUE(named.at("error").is_null());
    }
  }
  EXPECT_THAT(methods, testing::ElementsAre("softmax", "elu+1", "relu", "softmax", "elu+1", "relu",
                                            "linear", "delta", "gated", "gated delta"));
}

TEST(BenchDecode, SetsTokensBesideAPlainRead) {
  const auto json = json_of({"bench", "decode", "--batch", "2", "--heads", "4", "--kv-heads", "2",
                             "--kv-seq", "40,50", "--head-dim", "8", "--storage",
                             "float32,bfloat16", "--threads", "1", "--repeat", "2"});
  EXPECT_EQ(json.at("machine").at("attention_target"), attention_target());
  ASSERT_EQ(json.at("results").size(), 4U);
  for (const auto& result : json.at("results")) {
    const auto& one = result.at("case");
    EXPECT_EQ(one.at("head_dim"), 8);
    EXPECT_EQ(one.at("threads"), 1);
    const double number_bytes = one.at("storage") == "float32" ? 4 : 2;
    const double bytes = 2 * 2 * 2 * 8 * number_bytes * one.at("kv_seq").get<double>();
    const double rate = result.at("gbytes_per_s");
    EXPECT_NEAR(result.at("us_per_token").get<double>(), bytes / rate / 1e3, 1e-6 * bytes / rate);
    EXPECT_GT(rate, 0);
    EXPECT_LE(result.at("quartiles_us").at(0), result.at("us_per_token"));
    EXPECT_DOUBLE_EQ(result.at("bandwidth_share"),
                     rate / result.at("read_gbytes_per_s").get<double>());
  }
}

TEST(BenchDecode, ReadsPagesOfEveryStorage) {
  const auto json = json_of({"bench", "decode", "--heads", "2", "--kv-seq", "40", "--head-dim",
                             "32", "--storage", "float32,float16,bfloat16,int8,int4", "--page",
                             "16", "--threads", "1", "--repeat", "1"});
  ASSERT_EQ(json.at("results").size(), 5U);
  for (const auto& result : json.at("results")) {
    EXPECT_EQ(result.at("case").at("page"), 16);
    EXPECT_GT(result.at("gbytes_per_s"), 0);
  }
  const auto quantised = json_of({"bench", "decode", "--heads", "1", "--kv-seq", "9", "--head-dim",
                                  "8", "--storage", "int8", "--threads", "1", "--repeat", "1"});
  EXPECT_EQ(quantised.at("results").at(0).at("case").at("page"), 128);
}

TEST(BenchDecode, SetsASharedPrefixBesideTheSameApart) {
  const auto json = json_of({"bench", "decode", "--batch", "3", "--heads", "2", "--kv-seq", "1030",
                             "--head-dim", "8", "--shared-prefix", "0,1025", "--page", "16",
                             "--threads", "1", "--repeat", "1"});
  ASSERT_EQ(json.at("results").size(), 2U);
  const auto& apart = json.at("results").at(0);
  EXPECT_EQ(apart.at("case").at("shared_prefix"), 0);
  EXPECT_FALSE(apart.contains("us_per_token_apart"));
  const auto& shared = json.at("results").at(1);
  EXPECT_EQ(shared.at("case").at("shared_prefix"), 1025);
  EXPECT_GT(shared.at("us_per_token_apart"), 0);
  EXPECT_DOUBLE_EQ(shared.at("share_of_apart"), shared.at("us_per_token").get<double>() /
                                                    shared.at("us_per_token_apart").get<double>());
  // 64 pages that all sequences share, and the last page of each.
  const double bytes = (64 + 3) * 16 * 2 * 2 * 8 * 4;
  EXPECT_NEAR(shared.at("us_per_token").get<double>() * shared.at("gbytes_per_s").get<double>(),
              bytes / 1e3, 1e-6 * bytes);
  const auto table =
      run_command({"bench", "decode", "--batch", "2", "--heads", "1", "--kv-seq", "40",
                   "--head-dim", "8", "--shared-prefix", "30", "--threads", "1", "--repeat", "1"});
  EXPECT_THAT(table.out, AllOf(HasSubstr("shared"), HasSubstr("of apart")));
}

TEST(BenchDecode, RefusesMisuse) {
  for (const Arguments& wrong :
       {Arguments{"--storage", "float8"}, Arguments{"--heads", "6", "--kv-heads", "4"},
        Arguments{"--kv-seq", "0"}, Arguments{"--page", "48"},
        Arguments{"--shared-prefix", "50", "--kv-seq", "40"}}) {
    Arguments all{"bench", "decode"};
    all.insert(all.end(), wrong.begin(), wrong.end());
    const auto result = run_command(all);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(HasSubstr("heed bench decode: "), HasSubstr(wrong.front())));
  }
}

TEST(BenchLinear, RefusesMisuse) {
  const auto result = run_command({"bench", "linear", "--mask", "diagonal"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--mask"));
}

}  // namespace
}  // namespace heed
