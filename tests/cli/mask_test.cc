#include "heed/attention/mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/attention/mask_text.h"
#include "support/command.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing_support::CommandResult;
using testing_support::read_text;
using testing_support::run_command;
using testing_support::TemporaryFolder;

TEST(MaskCommand, PrintsPairsAndTheMatrix) {
  const CommandResult result = run_command({"mask", "longformer(1,1)", "--seq", "6"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_EQ(result.out,
            "sliding_window(1, 1) | global_tokens(1)\n"
            "queries        6\n"
            "keys           6\n"
            "visible pairs  24 of 36, 66.7 %\n"
            "causal pairs   15 of 21, 71.4 %\n"
            "\n"
            "######\n"
            "###...\n"
            "####..\n"
            "#.###.\n"
            "#..###\n"
            "#...##\n");
}

TEST(MaskCommand, QueriesAndKeysMayDiffer) {
  const CommandResult result =
      run_command({"mask", "sliding_window(2, 0, bottom_right)", "--q-len", "2", "--kv-len", "5"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("visible pairs  6 of 10, 60.0 %\n"),
                                HasSubstr("causal pairs   6 of 9, 66.7 %\n\n.###.\n..###\n")));
}

TEST(MaskCommand, ALongMaskIsCountedAndNotPrinted) {
  const CommandResult longest = run_command({"mask", "causal", "--seq", "64"});
  EXPECT_EQ(std::count(longest.out.begin(), longest.out.end(), '#'), 64 * 65 / 2);
  const CommandResult longer = run_command({"mask", "causal", "--seq", "65"});
  EXPECT_EQ(longer.exit_code, 0) << longer.err;
  EXPECT_THAT(longer.out,
              AllOf(HasSubstr("visible pairs  2145 of 4225, 50.8 %\n"),
                    HasSubstr("causal pairs   2145 of 2145, 100.0 %\n"), Not(HasSubstr("#"))));
}

// Compares each number with one counted cell by cell.
TEST(MaskCommand, JsonHasTheSameNumbers) {
  constexpr std::int64_t kLength = 13;
  for (const std::string text : {"none", "causal", "strided(3) | global_tokens(2)", "columns(4)",
                                 "bigbird(2, 3, 1, 1, 0)", "streaming(2, 4)"}) {
    const CommandResult result = run_command({"mask", text, "--seq", "13", "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const ScoreShape shape{.q_len = kLength, .kv_len = kLength};
    const Tensor<bool> allowed = materialize_allow(parse_mask(text), shape);
    std::int64_t visible = 0;
    std::int64_t causal = 0;
    for (std::int64_t q = 0; q < kLength; ++q) {
      for (std::int64_t k = 0; k < kLength; ++k) {
        if (!allowed(0, 0, q, k)) continue;
        ++visible;
        causal += k <= q ? 1 : 0;
      }
    }
    const auto json = nlohmann::json::parse(result.out);
    EXPECT_EQ(json["mask"], parse_mask(text).description());
    EXPECT_EQ(json["q_len"], kLength);
    EXPECT_EQ(json["kv_len"], kLength);
    EXPECT_EQ(json["pairs"]["visible"], visible) << text;
    EXPECT_EQ(json["pairs"]["all"], 169);
    EXPECT_EQ(json["pairs"]["share"], static_cast<double>(visible) / 169);
    EXPECT_EQ(json["causal_pairs"]["visible"], causal) << text;
    EXPECT_EQ(json["causal_pairs"]["all"], 91);
    EXPECT_EQ(json["causal_pairs"]["share"], static_cast<double>(causal) / 91);
    EXPECT_EQ(json["lines"], to_lines(parse_mask(text), shape)) << text;
  }
}

TEST(MaskCommand, JsonHasLinesUpTo256Tokens) {
  const auto has_lines = [](const std::string& seq) {
    const CommandResult result = run_command({"mask", "causal", "--seq", seq, "--json"});
    return nlohmann::json::parse(result.out).contains("lines");
  };
  EXPECT_TRUE(has_lines("256"));
  EXPECT_FALSE(has_lines("257"));
}

TEST(MaskCommand, DrawsAPicture) {
  const TemporaryFolder folder;
  for (const auto& [name, start] : {std::pair{"m.svg", "<?xml"},
                                    {"m.png", "\x89PNG"},
                                    {"m.pdf", "%PDF"},
                                    {"m.html", "<!DOCTYPE html>"}}) {
    const CommandResult result =
        run_command({"mask", "longformer(4, 2)", "--seq", "32", "--out", folder / name});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, StartsWith("sliding_window(4, 4) | global_tokens(2)\n"));
    EXPECT_THAT(read_text(folder / name), StartsWith(start));
  }
  EXPECT_THAT(read_text(folder / "m.svg"),
              AllOf(HasSubstr("<title>sliding_window(4, 4) | global_tokens(2)</title>"),
                    HasSubstr("fill=\"#ffffff\""), HasSubstr("</svg>")));
}

// The page has the cells as text.
TEST(MaskCommand, DrawsWhatIsHidden) {
  const TemporaryFolder folder;
  const CommandResult result =
      run_command({"mask", "causal", "--seq", "2", "--out", folder / "m.html"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(read_text(folder / "m.html"),
              AllOf(HasSubstr("<th scope=\"row\">0</th><td></td><td>masked</td></tr>"),
                    HasSubstr("<th scope=\"row\">1</th><td></td><td></td></tr>")));
}

TEST(MaskCommand, DrawsOnADarkGround) {
  const TemporaryFolder folder;
  const CommandResult result = run_command({"mask", "causal", "--dark", "--out", folder / "d.svg"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(read_text(folder / "d.svg"),
              AllOf(Not(HasSubstr("fill=\"#ffffff\"")), HasSubstr("</svg>")));
}

TEST(MaskCommand, AMaskThatCannotBeReadIsMarked) {
  const CommandResult result = run_command({"mask", "causal & sliding_window(2)"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err,
              AllOf(StartsWith("heed mask: MASK: expected RIGHT"), HasSubstr("at character 26"),
                    HasSubstr("\n  causal & sliding_window(2)\n                           ^\n")));
  EXPECT_EQ(run_command({"mask", "cusal"}).exit_code, 2);
  EXPECT_EQ(run_command({"mask"}).exit_code, 2);
}

TEST(MaskCommand, AMaskThatDoesNotFitIsRefused) {
  for (const char* text : {"causal", "rows(0:2, 1:3)", "documents(0, 3, 7)", "key_lengths(9, 4)"}) {
    const CommandResult result = run_command({"mask", text, "--q-len", "4", "--kv-len", "6"});
    EXPECT_EQ(result.exit_code, 2) << text;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, StartsWith("heed mask: MASK does not fit 4 queries and 6 keys: "));
  }
}

TEST(MaskCommand, OptionsAreCheckedBeforeAnythingIsWritten) {
  const TemporaryFolder folder;
  const auto error = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"mask", "causal"});
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, 2) << result.out;
    EXPECT_EQ(result.out, "");
    return result.err;
  };
  EXPECT_THAT(error({"--seq", "0"}), HasSubstr("--seq is 0, expected 1 to 65536"));
  EXPECT_THAT(error({"--q-len", "65537"}), HasSubstr("--q-len is 65537, expected 1 to 65536"));
  EXPECT_THAT(error({"--kv-len", "-1"}), HasSubstr("--kv-len is -1, expected 1 to 65536"));
  EXPECT_THAT(error({"--out", folder / "m.gif"}), HasSubstr("does not end in .png, .svg, .pdf or"));
  EXPECT_THAT(error({"--seq", "257", "--out", folder / "m.svg"}),
              HasSubstr("--out: 257 queries and 257 keys are too many for a picture, expected at "
                        "most 256 of each"));
  EXPECT_THAT(error({"--kv-len", "4", "--out", folder / "m.svg"}), HasSubstr("does not fit"));
  EXPECT_EQ(folder.num_files(), 0U);
}

}  // namespace
}  // namespace heed
