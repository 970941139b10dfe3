#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "heed/viz/terminal.h"
#include "io/unicode.h"
#include "support/refusal.h"

namespace heed { namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;
using testing_support::Refuses;

const std::vector<std::string> kCat{"The", "cat", "sat"};

// Causal weights of three words, with 9 for hidden keys, and the keys that each query sees.
Tensor<float> cat_weights() {
  return Tensor<float>({3, 3}, {1, 9, 9, 0.25F, 0.75F, 9, 0, 0.125F, 0.875F});
}
Tensor<bool> cat_visible() {
  return Tensor<bool>({3, 3}, {true, false, false, true, true, false, true, true, true});
}

TerminalStyle plain(int width) { return {ColorDepth::kPlain, width, true}; }

std::string picture(const Tensor<float>& weights, const std::vector<std::string>& labels,
                    const TerminalStyle& style) {
  HeatmapOptions options;
  options.legend = false;
  return render_heatmap(weights, {labels, labels}, style, options);
}

std::vector<std::string> words(std::int64_t count) {
  std::vector<std::string> words;
  for (std::int64_t i = 0; i < count; ++i) words.push_back(fmt::format("w{}", i));
  return words;
}

// Removes heed's own escape sequences, ESC [ digits and semicolons m.
std::string without_colors(std::string text) {
  for (auto begin = text.find("\x1b["); begin != text.npos; begin = text.find("\x1b[", begin)) {
    const auto end = text.find_first_not_of("0123456789;", begin + 2);
    if (end == text.npos || text[end] != 'm') break;
    text.erase(begin, end + 1 - begin);
  }
  return text;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

TEST(Heatmap, PrintsValuesWhereTheyFit) {
  const Tensor<bool> visible = cat_visible();
  HeatmapOptions options;
  options.visible = visible;
  EXPECT_EQ(render_heatmap(cat_weights(), {kCat, kCat}, plain(80), options),
            "     The   cat   sat\n"
            "The  1.00   ·     ·\n"
            "cat  0.25  0.75   ·\n"
            "sat  0.00  0.12  0.88\n"
            "Row: a query; column: a key; cell: the weight the query gives the key. · marks a\n"
            "key that the query does not see.\n");
}

TEST(Heatmap, ShortensValuesBeforeItDropsThem) {
  EXPECT_EQ(picture(Tensor<float>({1, 4}, {1, 0.5F, 0.25F, 0}), {}, plain(20)),
            "   0   1   2   3\n"
            "0 1.0 .50 .25 .00\n");
}

TEST(Heatmap, ShadesWhereNoValueFits) {
  Tensor<float> weights(Shape{9, 9});
  for (std::int64_t i = 0; i < 9; ++i) weights(i, i) = static_cast<float>(i + 1) / 9;
  const auto drawn = lines(picture(weights, words(9), plain(21)));
  ASSERT_EQ(drawn.size(), 2U + 9U);
  EXPECT_EQ(drawn[0], "   w w w w w w w w w");
  EXPECT_EQ(drawn[1], "   0 1 2 3 4 5 6 7 8");
  EXPECT_EQ(drawn[2], "w0 ..");
  EXPECT_EQ(drawn[10], "w8                 @@");
}

TEST(Heatmap, TellsMaskedFromZero) {
  const Tensor<float> weights(Shape{1, 30});
  Tensor<bool> visible(Shape{1, 30});
  visible(0, 1) = true;
  HeatmapOptions options;
  options.visible = visible;
  const std::string utf8 = render_heatmap(weights, {}, plain(40), options);
  EXPECT_THAT(utf8, HasSubstr("\n0 · ··"));
  EXPECT_THAT(utf8, HasSubstr("0 [ .:-=+*#%@] 1.00\n"));
  const std::string ascii = render_heatmap(weights, {}, {ColorDepth::kPlain, 40, false}, options);
  EXPECT_THAT(ascii, HasSubstr("\n0 x xx"));
}

TEST(Heatmap, FortyTokensFitEightyColumns) {
  const Tensor<float> weights(Shape{40, 40});
  const std::string drawn = render_heatmap(weights, {words(40), words(40)}, plain(80));
  EXPECT_THAT(drawn, Not(HasSubstr("largest")));
}

TEST(Heatmap, DrawsTheLargestOfABlock) {
  Tensor<float> weights(Shape{200, 200});
  weights(199, 1) = 1;
  const std::string drawn = render_heatmap(weights, {}, plain(80));
  EXPECT_THAT(drawn, HasSubstr("\n198 @\n"));
  EXPECT_THAT(drawn, HasSubstr("largest of 3 by 3 weights"));
  weights(198, 0) = NAN;
  EXPECT_THAT(render_heatmap(weights, {}, plain(80)), HasSubstr("\n198 ?\n"));
}

TEST(Heatmap, DrawsTwoRowsOfBlocksOnALineWhereItHasColours) {
  Tensor<float> weights({60, 60});
  weights(0, 0) = 1;
  Tensor<bool> visible({60, 60});
  for (std::int64_t row = 0; row < 60; ++row) visible(row, 0) = row < 2 || row >= 4;
  HeatmapOptions options;
  options.visible = visible;
  options.legend = false;
  const TerminalStyle colors{ColorDepth::kTrueColor, 33, true};
  const auto colored = lines(render_heatmap(weights, {}, colors, options));
  const auto plain_lines = lines(render_heatmap(weights, {}, plain(33), options));
  const auto is_row = [](const std::string& line) { return line.find("\xE2\x96") != line.npos; };
  EXPECT_EQ(std::count_if(colored.begin(), colored.end(), is_row), 15);
  EXPECT_GT(plain_lines.size(), 30U);
  const auto first = std::find_if(colored.begin(), colored.end(), is_row);
  // The upper half has the weight 1, the lower half shows no visible key.
  EXPECT_THAT(*first, HasSubstr("\x1b[38;2;253;231;37m▀\x1b[0m"));
  EXPECT_THAT(*(first + 1), HasSubstr("\x1b[48;2;68;1;84;38;2;68;1;84m▀"));
}

TEST(Heatmap, NumbersKeysTooWideToStandUpright) {
  const std::vector<std::string> labels(12, "猫");
  const auto drawn = lines(picture(Tensor<float>(Shape{12, 12}), labels, plain(20)));
  EXPECT_THAT(drawn[0], StartsWith("keys: 0=猫 1=猫"));
  EXPECT_THAT(drawn, testing::Contains("   012345678901"));
}

TEST(Heatmap, ColorsCells) {
  const Tensor<float> weights({1, 2}, {0, 1});
  const std::string full = picture(weights, {}, {ColorDepth::kTrueColor, 80, true});
  EXPECT_THAT(full, HasSubstr("\x1b[48;2;68;1;84;38;2;255;255;255m 0.00 \x1b[0m"));
  EXPECT_THAT(full, HasSubstr("\x1b[48;2;253;231;37;38;2;0;0;0m 1.00 \x1b[0m"));
  const std::string some = picture(weights, {}, {ColorDepth::k256, 80, true});
  EXPECT_THAT(some, HasSubstr("\x1b[48;5;53;38;5;231m 0.00 \x1b[0m"));
  EXPECT_THAT(some, HasSubstr("\x1b[48;5;220;38;5;16m 1.00 \x1b[0m"));
  EXPECT_EQ(without_colors(full), without_colors(some));
}

TEST(Heatmap, UsesTheScaleItIsGiven) {
  HeatmapOptions options;
  options.scale_max = 0.5F;
  options.color_map = ColorMap::kGreys;
  const std::string drawn = render_heatmap(Tensor<float>({1, 1}, {0.5F}), {},
                                           {ColorDepth::kTrueColor, 80, true}, options);
  EXPECT_THAT(drawn, HasSubstr("\x1b[48;2;0;0;0;38;2;255;255;255m 0.50 "));
}

TEST(Heatmap, ShowsWhatIsNotANumberBetween0And1) {
  EXPECT_EQ(picture(Tensor<float>({1, 5}, {NAN, INFINITY, -2, 1234.5F, 1e9F}), {}, plain(80)),
            "    0     1     2     3     4\n"
            "0  nan   inf  -2.00  1234 #####\n");
}

TEST(Heatmap, AlignsWideAndCombiningCharacters) {
  EXPECT_EQ(picture(Tensor<float>({2, 2}, {1, 0, 0, 1}), {"猫が", "e\u0301"}, plain(80)),
            "      猫が   e\u0301\n"
            "猫が  1.00  0.00\n"
            "   e\u0301  0.00  1.00\n");
}

TEST(Heatmap, CutsLongLabels) {
  const std::string drawn =
      picture(Tensor<float>({1, 1}, {1}), {"antidisestablishmentarianism"}, plain(40));
  EXPECT_EQ(drawn, "           antidisest…\nantidises…     1.00\n");
}

TEST(Heatmap, NothingToDraw) {
  EXPECT_EQ(render_heatmap(Tensor<float>(Shape{0, 3}), {}, plain(80)), "(no weights)\n");
  EXPECT_EQ(render_heatmap(Tensor<float>(Shape{3, 0}), {}, plain(80)), "(no weights)\n");
}

TEST(Heatmap, RefusesWhatDoesNotFit) {
  const Tensor<float> weights(Shape{2, 3});
  EXPECT_THAT(([&] {
                render_heatmap(weights, {kCat, kCat}, {});
              }),
              ThrowsMessage<InvalidArgument>("render_heatmap: 3 query labels were given for 2"));
  EXPECT_THAT([] { render_heatmap(Tensor<float>(Shape{3}), {}, {}); }, Refuses("weights", "[3]"));
  HeatmapOptions options;
  const Tensor<bool> visible(Shape{3, 2});
  options.visible = visible;
  EXPECT_THAT(([&] { render_heatmap(weights, {}, {}, options); }), Refuses("visible", "[3, 2]"));
  options.visible = {};
  options.scale_max = 0;
  EXPECT_THAT(([&] { render_heatmap(weights, {}, {}, options); }), Refuses("scale_max", "0"));
}

TEST(Heatmap, NeverExceedsTheWidthNorLeaksAControl) {
  EXPECT_TRUE(rc::check("lines fit, and every control is ours", [] {
    const auto rows = *rc::gen::inRange<std::int64_t>(1, 60);
    const auto keys = *rc::gen::inRange<std::int64_t>(1, 200);
    const auto label =
        rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::elementOf(
                         std::vector<std::string>{"a", "word", " ", "猫", "\u0301", "👩‍👧",
                                                  "\x1b[2J", "\n", "\u202e", "\xff", "\u009b"})),
                     [](const std::vector<std::string>& parts) {
                       std::string joined;
                       for (const std::string& part : parts) joined += part;
                       return joined;
                     });
    const auto labels = [&](std::int64_t count) {
      return *rc::gen::container<std::vector<std::string>>(static_cast<std::size_t>(count), label);
    };
    const auto queries = labels(rows);
    const auto names = labels(keys);
    const TerminalStyle style{
        *rc::gen::element(ColorDepth::kPlain, ColorDepth::k256, ColorDepth::kTrueColor),
        *rc::gen::inRange(20, 120), *rc::gen::arbitrary<bool>()};
    const Tensor<float> weights(Shape{rows, keys});
    for (const std::string& line :
         lines(without_colors(render_heatmap(weights, {queries, names}, style)))) {
      RC_ASSERT(unicode::columns(line) <= style.width);
      RC_ASSERT(sanitize_for_terminal(line) == line);
      if (!style.utf8) {
        for (const char c : line) RC_ASSERT(c >= ' ' && c <= '~');
      }
    }
  }));
}

}  // namespace
}  // namespace heed
