// heed bench --baseline: compares an earlier report with new measurements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/command.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::run_command;

using Arguments = std::vector<std::string>;

class BenchBaseline : public testing::Test {
 protected:
  static Arguments joined(Arguments all, const Arguments& more) {
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  // Returns a small case of a verb.
  static Arguments small(const std::string& verb, const Arguments& more) {
    Arguments all{"bench", verb};
    if (verb != "tutorial") all = joined(all, {"--repeat", "2"});
    if (verb == "seq2seq") {
      all = joined(all, {"--batch", "2", "--d-model", "8", "--layers", "1", "--attention", "dot"});
    } else if (verb != "tutorial") {
      all = joined(all, {"--heads", "2", "--head-dim", "8"});
    }
    return joined(all, more);
  }

  void save(const nlohmann::ordered_json& report) const { save_text(report.dump()); }
  void save_text(const std::string& text) const { std::ofstream(file()) << text; }

  nlohmann::ordered_json measured(const std::string& verb, const Arguments& more) const {
    const auto result = run_command(joined(small(verb, more), {"--json"}));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::ordered_json::parse(result.out);
  }

  std::string file() const { return folder_ / "earlier.json"; }

  // Returns a report of one case that `--seq 5 --threads 1` measures again.
  nlohmann::ordered_json earlier() const {
    return measured("forward", {"--seq", "5", "--threads", "1"});
  }

  void expect_refused(const std::string& text) const {
    const auto result =
        run_command(small("forward", {"--seq", "5", "--threads", "1", "--baseline", file()}));
    EXPECT_EQ(result.exit_code, 1) << result.out;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("heed bench forward: "), HasSubstr(file()), HasSubstr(text)));
  }

  testing_support::TemporaryFolder folder_;
};

TEST_F(BenchBaseline, EveryVerbTakesItsOwnReport) {
  const std::vector<Arguments> verbs{{"forward", "--seq", "5"},
                                     {"backward", "--seq", "5"},
                                     {"linear", "--seq", "5"},
                                     {"decode", "--kv-seq", "5"},
                                     {"tutorial"},
                                     {"seq2seq"}};
  for (const Arguments& verb : verbs) {
    const Arguments more = joined({verb.begin() + 1, verb.end()}, {"--threads", "1"});
    const nlohmann::ordered_json report = measured(verb.front(), more);
    EXPECT_EQ(report.at("verb"), verb.front());
    save(report);
    const auto json = measured(verb.front(), joined(more, {"--baseline", file()}));
    const std::string number = verb.front() == "decode" ? "us_per_token" : "median_ms";
    EXPECT_EQ(json.at("baseline").at("number"), number);
    EXPECT_TRUE(json.at("baseline").at("missing").empty()) << json.at("baseline");
    EXPECT_TRUE(json.at("baseline").at("added").empty()) << json.at("baseline");
    EXPECT_TRUE(json.at("baseline").at("differences").empty()) << json.at("baseline");
    ASSERT_EQ(json.at("results").size(), report.at("results").size());
    for (std::size_t i = 0; i < json.at("results").size(); ++i) {
      const auto& result = json.at("results").at(i);
      const double old_number = report.at("results").at(i).at(number);
      EXPECT_EQ(result.at("baseline"), old_number);
      EXPECT_DOUBLE_EQ(result.at("ratio"), old_number / result.at(number).get<double>());
    }
  }
}

TEST_F(BenchBaseline, EveryTableHasAColumnOfRatios) {
  const std::vector<Arguments> verbs{
      {"forward", "--seq", "5"}, {"decode", "--kv-seq", "5"}, {"seq2seq"}};
  for (const Arguments& verb : verbs) {
    const Arguments more = joined({verb.begin() + 1, verb.end()}, {"--threads", "1"});
    save(measured(verb.front(), more));
    const auto table = run_command(small(verb.front(), joined(more, {"--baseline", file()})));
    EXPECT_EQ(table.exit_code, 0) << table.err;
    EXPECT_THAT(table.out,
                AllOf(HasSubstr("  ratio\n"), HasSubstr(" of " + file() + " by that of here\n"),
                      Not(HasSubstr("in the baseline"))));
  }
}

TEST_F(BenchBaseline, SaysWhatOnlyOneOfThemHas) {
  save(measured("forward", {"--seq", "5,6", "--threads", "1"}));
  const auto result =
      run_command(small("forward", {"--seq", "6,7", "--threads", "1", "--baseline", file()}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("! only in the baseline: "), HasSubstr("seq=5, "),
                                HasSubstr("! not in the baseline: "), HasSubstr("seq=7, "),
                                Not(HasSubstr("seq=6, "))));
  EXPECT_THAT(result.out, testing::ContainsRegex("\n  7 .*  -\n"));
}

TEST_F(BenchBaseline, ACaseThatIsThereTwiceIsComparedInOrder) {
  auto report = measured("forward", {"--seq", "5,5", "--threads", "1"});
  report["results"][0]["median_ms"] = 1e6;
  report["results"][1]["median_ms"] = 1e9;
  save(report);
  const auto json = measured("forward", {"--seq", "5,5,5", "--threads", "1", "--baseline", file()});
  EXPECT_EQ(json.at("results").at(0).at("baseline"), 1e6);
  EXPECT_EQ(json.at("results").at(1).at("baseline"), 1e9);
  EXPECT_FALSE(json.at("results").at(2).contains("ratio"));
  EXPECT_EQ(json.at("baseline").at("added").size(), 1U);
}

TEST_F(BenchBaseline, SaysThatTheMachineWasAnother) {
  auto report = earlier();
  report["machine"]["processor"] = "Abacus\x1b[2J";
  report["machine"]["attention_target"] = "BEADS";
  report["results"][0]["case"]["threads"] = 3;
  save(report);
  const auto result =
      run_command(small("forward", {"--seq", "5", "--threads", "1", "--baseline", file()}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(HasSubstr("in the baseline Abacus?[2J\n"), HasSubstr("! attention_target is "),
                    HasSubstr(", in the baseline BEADS\n"),
                    HasSubstr("! threads is 1, in the baseline 3\n")));
}

TEST_F(BenchBaseline, OtherFilesAreRefused) {
  save_text("{\"verb\": \"forward\", ");
  expect_refused("at byte ");
  save_text("[]");
  expect_refused("this is no report of heed bench, expected what");
  save_text("{}");
  expect_refused(
      "this is no report of heed bench, expected what `heed bench forward --json` printed");
  save_text(R"({"verb": "back\u001bward"})");
  expect_refused("this is of `heed bench back?ward`");
  save_text(R"({"verb": 3})");
  expect_refused("verb is an integer, expected a string");
  save_text(R"({"verb": "forward"})");
  expect_refused("has no 'results'");
  save_text(R"({"verb": "forward", "results": 3})");
  expect_refused("results is an integer, expected an array");
  save_text(std::string(100000, '['));
  expect_refused("at byte ");
}

TEST_F(BenchBaseline, ResultsThatAreNoneAreRefused) {
  const auto damaged = [this](const auto& damage, const std::string& text) {
    auto report = earlier();
    damage(report["results"][0]);
    save(report);
    expect_refused(text);
  };
  damaged([](auto& result) { result.erase("case"); }, "results[0] has no 'case'");
  damaged([](auto& result) { result["case"] = 1; }, "results[0].case is no object");
  damaged(
      [](auto& result) {
        result["case"]["seq"] = {1, 2};
      },
      "results[0].case.seq is no text and no number");
  damaged([](auto& result) { result.erase("median_ms"); }, "results[0] has no 'median_ms'");
  damaged([](auto& result) { result["median_ms"] = "fast"; }, "results[0].median_ms is a string");
  damaged([](auto& result) { result["median_ms"] = -1; },
          "results[0].median_ms is -1, expected a number of at least 0");
}

TEST_F(BenchBaseline, AFileThatIsNotThereIsNamedBeforeAnythingIsMeasured) {
  expect_refused("No such file");
  const auto result = run_command({"bench", "forward", "--baseline", ""});
  EXPECT_EQ(result.exit_code, 2);
}

}  // namespace
}  // namespace heed
