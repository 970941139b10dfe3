// heed compare masks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compare/attention_kinds.h"
#include "compare/masks_comparison.h"
#include "compare/masks_report.h"
#include "support/child.h"
#include "support/command.h"
#include "support/tensors.h"

namespace heed::cli { namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::Child;
using testing_support::CommandResult;
using testing_support::max_difference;
using testing_support::normal;
using testing_support::read_text;
using testing_support::run_command;
using testing_support::TemporaryFolder;
using Arguments = std::vector<std::string>;

// Returns small sizes, which `more` may replace.
Arguments tiny_masks(const Arguments& more) {
  Arguments arguments{"compare", "masks"};
  for (const auto& [name, value] : std::map<std::string, std::string>{{"--context", "16"},
                                                                      {"--timed", "64"},
                                                                      {"--parts", "4"},
                                                                      {"--gap", "4"},
                                                                      {"--d-model", "8"},
                                                                      {"--heads", "2"},
                                                                      {"--layers", "1"},
                                                                      {"--seeds", "2"},
                                                                      {"--copy-steps", "2"},
                                                                      {"--text-steps", "2"}}) {
    if (std::find(more.begin(), more.end(), name) != more.end()) continue;
    arguments.insert(arguments.end(), {name, value});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(AttentionKinds, SeeAboutTheirPart) {
  for (const SizedAttention& attention : sized_attentions(attention_kind_names(), {4, 8, 16})) {
    const auto share = attention.visible_share(1024);
    if (attention.name == "linear") {
      EXPECT_FALSE(share);
    } else if (attention.name == "full") {
      EXPECT_EQ(share, 1);
    } else {
      const double part = 1.0 / static_cast<double>(attention.parts);
      EXPECT_GT(*share, part) << attention.label();
      EXPECT_LT(*share, 4 * part) << attention.label();
    }
  }
}

// A window of 8 and the columns 3, 7, 11, …; a query sees at most 9 keys of its window.
TEST(AttentionKinds, CountVisiblePairs) {
  const SizedAttention columns{"columns", 4};
  EXPECT_EQ(columns.text(32), "sliding_window(8, 0) | columns(4)");
  std::int64_t seen = 0;
  std::int64_t causal = 0;
  for (std::int64_t query = 0; query < 32; ++query) {
    for (std::int64_t key = 0; key <= query; ++key) {
      seen += query - key <= 8 || key % 4 == 3 ? 1 : 0;
      ++causal;
    }
  }
  EXPECT_DOUBLE_EQ(*columns.visible_share(32),
                   static_cast<double>(seen) / static_cast<double>(causal));
}

// The timed call hides the future and shows everything else that the kind allows.
TEST(AttentionKinds, AreCausal) {
  const Shape shape{1, 2, 40, 8};
  const Tensor<float> query = normal<float>(shape, 1);
  const Tensor<float> key = normal<float>(shape, 2);
  const Tensor<float> value = normal<float>(shape, 3);
  Tensor<float> later = to_tensor(value.view());
  for (std::int64_t head = 0; head < 2; ++head) {
    for (std::int64_t d = 0; d < 8; ++d) later(0, head, 20, d) += 1;
  }
  for (const SizedAttention& attention : sized_attentions(attention_kind_names(), {4})) {
    const models::AttentionKind kind = attention.at(40);
    const Tensor<float> before = attend_once(kind, query, key, value);
    const Tensor<float> after = attend_once(kind, query, key, later);
    EXPECT_EQ(max_difference(to_tensor(before.view().slice(2, 0, 20)),
                             to_tensor(after.view().slice(2, 0, 20))),
              0)
        << attention.label();
    EXPECT_GT(max_difference(to_tensor(before.view().slice(2, 20, 21)),
                             to_tensor(after.view().slice(2, 20, 21))),
              1e-3)
        << attention.label();
  }
}

TEST(AttentionKinds, OnlyThoseWithASizeHaveSeveral) {
  std::vector<std::string> labels;
  for (const auto& attention : sized_attentions({"full", "local", "linear"}, {4, 16})) {
    labels.push_back(attention.label());
  }
  EXPECT_THAT(labels, testing::ElementsAre("full", "local 1/4", "local 1/16", "linear"));
}

TEST(CompareMasks, MeasuresEveryKind) {
  const CommandResult result = run_command(tiny_masks({"--json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json comparison = json::parse(result.out);
  std::vector<std::string> kinds;
  for (const json& of : comparison.at("results")) {
    kinds.push_back(of.at("attention").get<std::string>());
    for (const char* const score : {"copy", "loss"}) {
      EXPECT_EQ(of.at(score).at("of_seeds").size(), 2U);
    }
    EXPECT_GT(of.at("seconds").get<double>(), 0);
    EXPECT_EQ(of.at("visible_share_of_copy").is_null(), kinds.back() == "linear");
    EXPECT_EQ(of.contains("workspace_bytes"), kinds.back() != "linear");
  }
  EXPECT_EQ(kinds, attention_kind_names());
  EXPECT_THAT(result.err, HasSubstr("linear, seed 1: copying "));
}

TEST(CompareMasks, TheSameSeedsGiveTheSameNumbers) {
  const Arguments some = tiny_masks({"--kinds", "bigbird,selected", "--json"});
  const auto learned = [&] {
    json comparison = json::parse(run_command(some).out);
    for (json& of : comparison.at("results")) {
      of.erase("seconds");
    }
    return comparison;
  };
  EXPECT_EQ(learned(), learned());
}

TEST(CompareMasks, SaysWhatItMeasured) {
  const CommandResult result = run_command(tiny_masks({"--kinds", "full,columns"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, StartsWith("# Masks compared\n"));
  EXPECT_THAT(result.out, HasSubstr("\n| full | none | 100.0 | "));
  EXPECT_THAT(result.out, HasSubstr("\n| columns 1/4 | sliding_window(7, 0) / columns(4) | "));
  EXPECT_THAT(result.out, HasSubstr("workspace, kB"));
}

TEST(CompareMasks, DrawsWhatItMeasured) {
  const TemporaryFolder folder;
  for (const std::string name : {"numbers.json", "picture.svg", "picture.png", "page.html"}) {
    const CommandResult result =
        run_command(tiny_masks({"--kinds", "local,linear", "--out", folder / name}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(json::parse(read_text(folder / "numbers.json")).at("results").size(), 2U);
  EXPECT_THAT(read_text(folder / "picture.svg"), HasSubstr("<svg"));
  EXPECT_THAT(read_text(folder / "picture.png"), StartsWith("\x89PNG"));
  EXPECT_THAT(read_text(folder / "page.html"), HasSubstr("local"));
}

void expect_refused(int exit_code, const Arguments& arguments, const std::string& text) {
  const CommandResult result = run_command(arguments);
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr(text));
}

TEST(CompareMasks, NamesWhatIsWrong) {
  const TemporaryFolder folder;
  expect_refused(2, tiny_masks({"--kinds", "some"}), "--kinds: 'some' is none of full, local, ");
  expect_refused(2, tiny_masks({"--parts", "1"}), "--parts");
  expect_refused(2, tiny_masks({"--seeds", "0"}), "--seeds is 0, expected 1 to 100");
  expect_refused(2, tiny_masks({"--positions", "alibi"}),
                 "--positions is 'alibi', which linear attention cannot have");
  expect_refused(2, tiny_masks({"--d-model", "9"}), "expected a multiple of --heads, 2");
  expect_refused(2, tiny_masks({"--out", folder / "x.csv"}), "does not end in .png, .svg, .pdf");
  std::ofstream(folder / "short") << std::string(64, 'a');
  expect_refused(1, tiny_masks({"--text", folder / "short"}),
                 "the text has 64 characters, of which the last quarter is held out, expected at "
                 "least 68");
  EXPECT_EQ(folder.num_files(), 1U);
}

TEST(CompareMasks, CtrlCEndsIt) {
  const TemporaryFolder folder;
  Child child(tiny_masks({"--seeds", "100", "--out", folder / "x.svg"}));
  child.wait_for("seed 0");
  child.send(SIGINT);
  EXPECT_EQ(child.finish().exit_code, 130);
  EXPECT_EQ(folder.num_files(), 0U);
}

}  // namespace
}  // namespace heed::cli
