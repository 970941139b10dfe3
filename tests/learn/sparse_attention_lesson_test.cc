// The lesson on sparse attention: recomputes pairs, paths through layers and selections from the
// definitions of the masks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/attention/mask.h"
#include "heed/attention/mask_text.h"
#include "heed/attention/select_blocks.h"
#include "heed/core/random.h"
#include "support/command.h"

namespace heed { namespace {

using nlohmann::json;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing_support::read_text;
using testing_support::run_command;
using testing_support::TemporaryFolder;
using Lines = std::vector<std::string>;
using Rule = std::function<bool(int q, int k)>;

Rule operator|(const Rule& a, const Rule& b) {
  return [a, b](int q, int k) { return a(q, k) || b(q, k); };
}
Rule operator&(const Rule& a, const Rule& b) {
  return [a, b](int q, int k) { return a(q, k) && b(q, k); };
}

bool is_past(int q, int k) { return k <= q; }
Rule window(int left, int right) {
  return [=](int q, int k) { return q - left <= k && k <= q + right; };
}
Rule global(int count) {
  return [=](int q, int k) { return q < count || k < count; };
}
Rule stride(int step) {
  return [=](int q, int k) { return (q - k) % step == 0; };
}
Rule column(int step) {
  return [=](int /*q*/, int k) { return k % step == step - 1; };
}
Rule dilation(int count, int step) {
  return [=](int q, int k) { return (q - k) % step == 0 && std::abs(q - k) <= count * step; };
}
Rule near_blocks(int each_side, int block) {
  return [=](int q, int k) { return std::abs(q / block - k / block) <= each_side; };
}
Rule sinks_and_window(int sinks, int last) {
  return [=](int q, int k) { return k <= q && (k < sinks || k > q - last); };
}
Rule child(int step) { return Rule(is_past) & (window(step - 1, 0) | stride(step)); }

// Returns the rule of every mask of the lesson without random blocks, by its text.
const std::map<std::string, Rule>& rules() {
  static const std::map<std::string, Rule> all{
      {"none", [](int, int) { return true; }},
      {"causal", is_past},
      {"sliding_window(2, 2)", window(2, 2)},
      {"sliding_window(8, 8)", window(8, 8)},
      {"sliding_window(64, 64)", window(64, 64)},
      {"causal & sliding_window(8, 0)", window(8, 0)},
      {"global_tokens(1)", global(1)},
      {"global_tokens(2)", global(2)},
      {"global_tokens(16)", global(16)},
      {"strided(4)", stride(4)},
      {"strided(8)", stride(8)},
      {"strided(512)", stride(512)},
      {"sliding_window(8, 8) | strided(8)", window(8, 8) | stride(8)},
      {"columns(4)", column(4)},
      {"columns(8)", column(8)},
      {"columns(512)", column(512)},
      {"dilated(2, 3)", dilation(2, 3)},
      {"dilated(8, 4)", dilation(8, 4)},
      {"dilated(4, 6)", dilation(4, 6)},
      {"dilated(64, 4)", dilation(64, 4)},
      {"block_window(1, 1, 8)", near_blocks(1, 8)},
      {"block_window(1, 1, 64)", near_blocks(1, 64)},
      {"longformer(2, 1)", window(2, 2) | global(1)},
      {"longformer(8, 1)", window(8, 8) | global(1)},
      {"longformer(16, 2)", window(16, 16) | global(2)},
      {"longformer(64, 16)", window(64, 64) | global(16)},
      {"causal & longformer(8, 1)", Rule(is_past) & (window(8, 8) | global(1))},
      {"causal & (sliding_window(16, 0) | global_tokens(2))",
       Rule(is_past) & (window(16, 0) | global(2))},
      {"causal & (block_window(0, 0, 8) | columns(8))",
       Rule(is_past) & (near_blocks(0, 8) | column(8))},
      {"sparse_transformer(4)", child(4)},
      {"sparse_transformer(8)", child(8)},
      {"sparse_transformer(16)", child(16)},
      {"sparse_transformer(512)", child(512)},
      {"streaming(1, 9)", sinks_and_window(1, 9)},
      {"streaming(2, 4)", sinks_and_window(2, 4)},
      {"streaming(2, 32)", sinks_and_window(2, 32)},
      {"streaming(4, 128)", sinks_and_window(4, 128)}};
  return all;
}

Lines lines_of(const Rule& sees, int length) {
  Lines lines;
  for (int q = 0; q < length; ++q) {
    lines.emplace_back();
    for (int k = 0; k < length; ++k) lines.back() += sees(q, k) ? '#' : '.';
  }
  return lines;
}

std::int64_t count_marks(const Lines& lines) {
  std::int64_t count = 0;
  for (const std::string& line : lines) count += std::count(line.begin(), line.end(), '#');
  return count;
}

// Returns the number of layers until each position depends on every position that `is_wanted`
// names, by the lengths of shortest paths (Floyd and Warshall).
std::optional<int> longest_way(const Lines& sees, const Rule& is_wanted) {
  const int length = static_cast<int>(sees.size());
  constexpr int kNoWay = 1'000'000;
  std::vector<std::vector<int>> ways(sees.size(), std::vector<int>(sees.size(), kNoWay));
  const auto way = [&ways](int from, int to) -> int& {
    return ways[static_cast<std::size_t>(from)][static_cast<std::size_t>(to)];
  };
  for (int q = 0; q < length; ++q) {
    for (int k = 0; k < length; ++k) {
      if (sees[static_cast<std::size_t>(q)][static_cast<std::size_t>(k)] == '#') way(q, k) = 1;
    }
    way(q, q) = 0;
  }
  for (int over = 0; over < length; ++over) {
    for (int q = 0; q < length; ++q) {
      for (int k = 0; k < length; ++k) {
        way(q, k) = std::min(way(q, k), way(q, over) + way(over, k));
      }
    }
  }
  int longest = 0;
  for (int q = 0; q < length; ++q) {
    for (int k = 0; k < length; ++k) {
      if (is_wanted(q, k)) longest = std::max(longest, way(q, k));
    }
  }
  return longest == kNoWay ? std::nullopt : std::optional(longest);
}

class SparseAttentionLesson : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const TemporaryFolder folder;
    const auto result =
        run_command({"lesson", "sparse-attention", "--out", folder / "lesson.json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    text = result.out;
    values = json::parse(read_text(folder / "lesson.json"));
  }

  inline static std::string text;
  inline static json values;
};

TEST_F(SparseAttentionLesson, PatternsAreWhatTheirNamesSay) {
  std::map<std::string, Lines> drawn;
  for (const json& pattern : values["patterns"]) {
    const std::string name = pattern["mask"];
    drawn[name] = pattern["lines"].get<Lines>();
    EXPECT_EQ(pattern["pairs"], count_marks(drawn[name])) << name;
    if (rules().contains(name)) {
      EXPECT_EQ(drawn[name], lines_of(rules().at(name), 16)) << name;
    }
  }
  EXPECT_EQ(drawn.size(), 12U);
  EXPECT_THAT(text, HasSubstr("sliding_window(2, 2)      global_tokens(2)\n"
                              "  136 pairs, 53.1 %         74 pairs, 28.9 %"));
  const std::string first = "####........####";
  const std::string third = "####....####....";
  EXPECT_THAT(
      drawn["blocks[8 of 16, 4 x 4]"],
      ElementsAre(first, first, first, first, "....####........", "....####........",
                  "....####........", "....####........", third, third, third, third,
                  "########....####", "########....####", "########....####", "########....####"));
  // One whole block of 4 keys for every 4 queries.
  const Lines& random = drawn["random_blocks(1, 4, 0)"];
  for (std::size_t q = 0; q < random.size(); ++q) {
    EXPECT_EQ(random[q], random[q / 4 * 4]);
    const std::size_t begin = random[q].find("####");
    EXPECT_EQ(begin % 4, 0U);
    EXPECT_EQ(std::count(random[q].begin(), random[q].end(), '#'), 4);
  }
}

TEST_F(SparseAttentionLesson, SomePatternsMoveWithTheQueryAndSomeStay) {
  for (const json& pattern : values["patterns"]) {
    const std::string name = pattern["mask"];
    const Lines lines = pattern["lines"].get<Lines>();
    for (std::size_t q = 1; q < lines.size(); ++q) {
      if (name == "sliding_window(2, 2)" || name == "strided(4)" || name == "dilated(2, 3)") {
        EXPECT_EQ(lines[q].substr(1), lines[q - 1].substr(0, 15)) << name;
      } else if (name == "columns(4)" || (name == "global_tokens(2)" && q > 2)) {
        EXPECT_EQ(lines[q], lines[q - 1]) << name;
      }
    }
  }
  const ScoreShape two_heads{.num_heads = 2, .q_len = 64, .kv_len = 64};
  const Mask random = parse_mask("random_blocks(1, 4, 0)");
  EXPECT_NE(to_lines(random, two_heads, kHashGlyphs, 0, 0),
            to_lines(random, two_heads, kHashGlyphs, 0, 1));
}

TEST_F(SparseAttentionLesson, AndBindsTighterThanOr) {
  const auto pairs = [](std::size_t i) { return values["combined"][i]["lines"].get<Lines>(); };
  const Rule either = window(2, 0) | global(1);
  EXPECT_EQ(pairs(0), lines_of(either, 8));
  EXPECT_EQ(pairs(1), lines_of(Rule(is_past) & either, 8));
  EXPECT_EQ(pairs(2), lines_of((Rule(is_past) & window(2, 0)) | global(1), 8));
  EXPECT_EQ(pairs(2)[0], "########");
  EXPECT_EQ(values["identities"].size(), 4U);
  for (const json& identity : values["identities"]) {
    EXPECT_EQ(identity["differing"], 0) << identity;
    const auto lines = [](const json& mask) {
      return to_lines(parse_mask(mask.get<std::string>()), {.q_len = 40, .kv_len = 40});
    };
    EXPECT_EQ(lines(identity["name"]), lines(identity["parts"])) << identity;
  }
  EXPECT_THAT(text, HasSubstr("at character 26\n  causal & sliding_window(2)\n"));
}

TEST_F(SparseAttentionLesson, EquationsCountPairs) {
  EXPECT_EQ(values["costs"].size(), 13U);
  for (const json& cost : values["costs"]) {
    const std::string name = cost["mask"];
    ASSERT_EQ(cost["lengths"], json({1024, 4096, 16384}));
    for (std::size_t i = 0; i < 3; ++i) {
      const auto counted = cost["counted"][i].get<std::int64_t>();
      if (cost["is_bound"]) {
        EXPECT_LE(counted, cost["by_equation"][i]) << name;
        EXPECT_GT(counted, cost["by_equation"][i].get<std::int64_t>() / 2) << name;
      } else {
        EXPECT_EQ(counted, cost["by_equation"][i]) << name;
      }
    }
    if (rules().contains(name)) {
      EXPECT_EQ(cost["counted"][0], count_marks(lines_of(rules().at(name), 1024))) << name;
    }
  }
  EXPECT_THAT(text, HasSubstr("  sliding_window(64, 64)    127,936    524,224   2,109,376     "
                              "8,449,984   0.20%"));
}

// Also at the longest text, where count_visible() is fast.
TEST_F(SparseAttentionLesson, EquationsHoldAtTheLongest) {
  for (const json& cost : values["costs"]) {
    const std::string name = cost["mask"];
    ASSERT_EQ(cost["longest"], 65536);
    if (name.find("strided") == 0 || name.find("columns") == 0 || name.find("sparse") == 0)
      continue;
    const auto counted = count_visible(parse_mask(name), {.q_len = 65536, .kv_len = 65536});
    const auto said = cost["at_longest"].get<std::int64_t>();
    if (cost["is_bound"]) {
      EXPECT_LE(counted, said) << name;
    } else {
      EXPECT_EQ(counted, said) << name;
    }
    EXPECT_DOUBLE_EQ(cost["share"], static_cast<double>(said) / 65536 / 65536) << name;
  }
}

TEST_F(SparseAttentionLesson, AWindowGrowsWithTheTextAndAStrideWithItsSquare) {
  const json& growth = values["growth"];
  EXPECT_NEAR(growth["window"], 4, 0.05);
  EXPECT_EQ(growth["stride"], 16);
  EXPECT_EQ(growth["root"], 128);
  // s T − s (s − 1) / 2 + T (T / s − 1) / 2 at s = √T.
  EXPECT_EQ(growth["pairs_at_root"], 128 * 16384 - 128 * 127 / 2 + 16384 * 127 / 2);
  EXPECT_NEAR(growth["in_roots"], 1.5, 0.02);
}

TEST_F(SparseAttentionLesson, LayersAreTheLongestOfTheShortestWays) {
  const auto expect_ways = [](const char* table, const Rule& is_wanted) {
    for (const json& row : values[table]) {
      const std::string name = row["mask"];
      const Lines sees = to_lines(parse_mask(name), {.q_len = 64, .kv_len = 64});
      if (name.find("random") == name.npos && name.find("bigbird") == name.npos) {
        ASSERT_THAT(rules(), Contains(Key(name)));
        EXPECT_EQ(sees, lines_of(rules().at(name), 64)) << name;
      }
      const std::optional<int> ways = longest_way(sees, is_wanted);
      EXPECT_EQ(row["layers"][0], ways ? json(*ways) : json(nullptr)) << name;
    }
  };
  expect_ways("layers", [](int, int) { return true; });
  expect_ways("causal_layers", is_past);
  EXPECT_EQ(values["layers"].size(), 10U);
  EXPECT_EQ(values["causal_layers"].size(), 6U);
}

TEST_F(SparseAttentionLesson, WindowsNeedMoreLayersForMoreTextAndOthersDoNot) {
  const auto layers = [](const char* table, const std::string& name) {
    for (const json& row : values[table]) {
      if (row["mask"] == name) return row["layers"];
    }
    return json();
  };
  const json as_windows{8, 16, 32};  // ⌈(T − 1) / 8⌉
  EXPECT_EQ(layers("layers", "sliding_window(8, 8)"), as_windows);
  for (const char* name :
       {"causal & sliding_window(8, 0)", "streaming(1, 9)", "causal & longformer(8, 1)"}) {
    EXPECT_EQ(layers("causal_layers", name), as_windows) << name;
  }
  const json two{2, 2, 2};
  for (const char* name : {"global_tokens(1)", "longformer(8, 1)", "bigbird(8, 3, 1, 1, 0)"}) {
    EXPECT_EQ(layers("layers", name), two) << name;
  }
  for (const char* name :
       {"sparse_transformer(8)", "causal & (block_window(0, 0, 8) | columns(8))"}) {
    EXPECT_EQ(layers("causal_layers", name), two) << name;
  }
  for (const char* name : {"dilated(8, 4)", "strided(8)", "columns(8)", "random_blocks(2, 8, 0)"}) {
    EXPECT_EQ(layers("layers", name), json({nullptr, nullptr, nullptr})) << name;
  }
  const auto random = layers("causal_layers", "causal & bigbird(8, 3, 1, 1, 0)");
  for (std::size_t i = 0; i < 3; ++i) EXPECT_LT(random[i], as_windows[i]);
}

TEST_F(SparseAttentionLesson, AWindowReachesLayersTimesItsWidth) {
  EXPECT_EQ(values["window"].size(), 4U);
  for (const json& row : values["window"]) {
    EXPECT_EQ(row["reach"], 8 * row["layers"].get<int>());
    EXPECT_EQ(row["beyond"], 0);
  }
  EXPECT_THAT(values["window_changes"].get<std::vector<double>>(), Each(testing::Gt(1e-6)));
}

TEST_F(SparseAttentionLesson, StridesColumnsAndGlobalTokensBridgeTheGap) {
  ASSERT_EQ(values["repairs"]["gap"], 37);
  const json& rows = values["repairs"]["rows"];
  ASSERT_EQ(rows.size(), 7U);
  for (const json& row : rows) {
    const std::string name = row["mask"];
    Lines sees = lines_of(rules().at(name), 64);
    const std::optional<int> way =
        longest_way(sees, [](int q, int k) { return q == 63 && k == 63 - 37; });
    if (way && *way <= row["layers"].get<int>()) {
      EXPECT_GT(row["change"], 1e-6) << row;
    } else {
      EXPECT_EQ(row["change"], 0) << row;
    }
  }
  EXPECT_EQ(rows[2]["change"], 0) << "global tokens do not help where no one sees the future";
  EXPECT_GT(rows[6]["change"], 0);
}

TEST_F(SparseAttentionLesson, QueriesChooseTheBestBlocksBeforeThem) {
  const std::vector<std::vector<double>> queries{{1, 0}, {1, 0}, {1, 0}, {0, 1},
                                                 {1, 0}, {0, 1}, {1, 0}, {0, 1}};
  const std::vector<std::vector<double>> means{{1, 0}, {0, 1}, {1, 0}, {9, 9}};
  ASSERT_EQ(values["choices"].size(), 8U);
  Lines expected_lines;
  for (std::size_t q = 0; q < 8; ++q) {
    const std::size_t own = q / 2;
    std::vector<double> affinities;
    affinities.reserve(means.size());
    for (const auto& mean : means) {
      affinities.push_back(std::inner_product(mean.begin(), mean.end(), queries[q].begin(), 0.0));
    }
    EXPECT_EQ(values["choices"][q]["affinities"].get<std::vector<double>>(), affinities);
    std::vector<std::size_t> chosen;
    if (own > 0) {
      const auto end = affinities.begin() + static_cast<std::ptrdiff_t>(own);
      chosen.push_back(
          static_cast<std::size_t>(std::max_element(affinities.begin(), end) - affinities.begin()));
    }
    chosen.push_back(own);
    EXPECT_EQ(values["choices"][q]["chosen"].get<std::vector<std::size_t>>(), chosen) << q;
    expected_lines.emplace_back(8, '.');
    for (std::size_t k = 0; k <= q; ++k) {
      if (std::count(chosen.begin(), chosen.end(), k / 2) > 0) expected_lines.back()[k] = '#';
    }
  }
  EXPECT_EQ(values["selected_lines"].get<Lines>(), expected_lines);
}

TEST_F(SparseAttentionLesson, NobodyChoosesTheFuture) {
  const json& last = values["last_block"];
  EXPECT_EQ(last["is_layout_the_same"], true);
  EXPECT_EQ(last["chosen_causal"], 2);
  EXPECT_EQ(last["chosen_both_ways"], 8);
  EXPECT_THAT(text, HasSubstr("the layout is the same."));
}

// The lesson says: "The choice has no gradient, but the chosen keys have". Checked for a query in
// block 2, which selected block 0 and its own.
TEST_F(SparseAttentionLesson, ChosenKeysHaveGradients) {
  TorchGenerator generator(0);
  const auto query = generator.randn({1, 1, 6, 4});
  Tensor<float> key({1, 1, 6, 4});
  for (std::int64_t k = 0; k < 2; ++k) {  // block 0 points in the direction of the last query
    for (std::int64_t d = 0; d < 4; ++d) key(0, 0, k, d) = query(0, 0, 5, d);
  }
  const auto value = generator.randn({1, 1, 6, 4});
  const auto layout = select_blocks(query, key, {.block = 2, .top_k = 2, .causal = true});
  const AttentionOptions options{.mask = Mask::blocks(layout, causal())};
  const auto forward = attention_with_lse(query, key, value, options);
  Tensor<float> of_last({1, 1, 6, 4});
  for (std::int64_t d = 0; d < 4; ++d) of_last(0, 0, 5, d) = 1;
  const auto gradients = attention_backward(of_last, query, key, value, forward, options);
  for (std::int64_t k = 0; k < 6; ++k) {
    const bool is_chosen = k / 2 != 1;
    EXPECT_EQ(gradients.key(0, 0, k, 0) != 0, is_chosen) << k;
  }
}

TEST_F(SparseAttentionLesson, MaskedIsDenseWithInfinities) {
  EXPECT_EQ(values["equality"].size(), 11U);
  for (const json& row : values["equality"]) {
    EXPECT_LT(row["difference"], 3e-6) << row;
    const std::string name = row["mask"];
    if (rules().contains(name)) {
      EXPECT_EQ(row["pairs"], 2 * count_marks(lines_of(rules().at(name), 70))) << name;
    }
  }
}

}  // namespace
}  // namespace heed
