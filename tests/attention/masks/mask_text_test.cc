// Masks parsed from their own descriptions.
#include "heed/attention/mask_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "heed/attention/block_layout.h"

namespace heed { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// Returns what the mask shows of a small square.
std::string picture(const Mask& mask) {
  std::string text;
  for (const std::string& line : to_lines(mask, {1, 1, 9, 9})) text += line + '\n';
  return text;
}

void expect_same(const char* text, const Mask& mask) {
  EXPECT_EQ(parse_mask(text).description(), mask.description()) << text;
  EXPECT_EQ(picture(parse_mask(text)), picture(mask)) << text;
}

TEST(MaskText, NamesMasks) {
  expect_same("none", Mask());
  expect_same("causal", causal());
  expect_same("causal()", causal());
  expect_same("causal(square)", causal());
  expect_same("causal(top_left)", causal_top_left());
  expect_same("causal(offset(0))", causal_top_left());
  expect_same("causal(offset(-3))", causal(-3));
  expect_same("causal(bottom_right)", causal_bottom_right());
  expect_same("causal(bottom_right(7))", causal(Alignment::bottom_right({7})));
  expect_same("sliding_window(4, 0)", sliding_window(4, 0));
  expect_same("sliding_window(unbounded, 2, offset(1))",
              sliding_window(kUnbounded, 2, Alignment::offset(1)));
  expect_same("prefix(3)", prefix(3));
  expect_same("global_tokens(2)", global_tokens(2));
  expect_same("strided(3, top_left)", strided(3, Alignment::top_left()));
  expect_same("columns(3)", columns(3));
  expect_same("dilated(2, 3)", dilated(2, 3));
  expect_same("longformer(2, 1)", longformer(2, 1));
  expect_same("sparse_transformer(3)", sparse_transformer(3));
  expect_same("block_window(1, unbounded, 2)", block_window(1, kUnbounded, 2));
  expect_same("random_blocks(1, 2, 18446744073709551615)",
              random_blocks({.count = 1, .block = 2, .seed = ~std::uint64_t{0}}));
  expect_same(
      "random_blocks(1, 2, 7, past, top_left)",
      random_blocks({.count = 1, .block = 2, .seed = 7, .only_past = true}, Alignment::top_left()));
  expect_same("bigbird(2, 1, 1, 1, 5)",
              bigbird({.block = 2, .window = 1, .global = 1, .random = 1, .seed = 5}));
  expect_same("streaming(1, 3)", streaming(1, 3));
  expect_same("streaming(1, unbounded)", streaming(1, kUnbounded));
  expect_same("tree(-1, 0, 0)", Mask::tree({-1, 0, 0}));
  expect_same("tree(-1, square)", Mask::tree({-1}, Alignment::square()));
  expect_same("tree()", Mask::tree({}));
  expect_same("tree(top_left)", Mask::tree({}, Alignment::top_left()));
  expect_same("documents(0, 4, 9)", documents({0, 4, 9}));
  expect_same("key_lengths(5)", key_lengths({5}));
  expect_same(
      "rows(0:1, 0:2, 0:3, 0:4, 0:5, -1:6, 0:7, 3:3, 4:2)",
      Mask::rows({{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 5}, {-1, 6}, {0, 7}, {3, 3}, {4, 2}}));
}

TEST(MaskText, JoinsThem) {
  expect_same("causal & sliding_window(2, 0)", causal() & sliding_window(2, 0));
  expect_same(" causal\t&\nsliding_window ( 2 ,0 ) ", causal() & sliding_window(2, 0));
  expect_same("causal & columns(3) | strided(4)", (causal() & columns(3)) | strided(4));
  expect_same("causal & (columns(3) | strided(4))", causal() & (columns(3) | strided(4)));
  expect_same("((columns(3)) | (strided(4) | prefix(2)))", columns(3) | strided(4) | prefix(2));
  expect_same("none & causal", causal());
  expect_same("causal | none", Mask());
}

TEST(MaskText, IsWhatDescriptionsAre) {
  EXPECT_EQ((columns(3) | strided(4)).description(), "columns(3) | strided(4)");
  EXPECT_EQ(((columns(3) | strided(4)) & causal()).description(),
            "(columns(3) | strided(4)) & causal");
  EXPECT_EQ(((columns(3) & causal()) | strided(4)).description(),
            "(columns(3) & causal) | strided(4)");
  EXPECT_EQ((((columns(3) | strided(4)) & causal()) | prefix(1)).description(),
            "((columns(3) | strided(4)) & causal) | prefix(1)");
}

void expect_refused(const std::string& text, const std::string& message) {
  EXPECT_THAT([&] { parse_mask(text); }, ThrowsMessage<InvalidArgument>(HasSubstr(message)))
      << text;
}

TEST(MaskText, ErrorsPointAtTheCharacter) {
  expect_refused("causal & windw(2, 0)",
                 "parse_mask: there is no mask 'windw', expected one of none, causal, ");
  expect_refused("causal & windw(2, 0)",
                 ", at character 10\n"
                 "  causal & windw(2, 0)\n"
                 "           ^");
  expect_refused("causal &", "expected a mask, but the text ends, at character 9\n  causal &\n" +
                                 std::string(10, ' ') + "^");
  expect_refused("", "expected a mask, but the text ends, at character 1\n  \n  ^");
  expect_refused("(causal", "expected '&', '|' or ')', but the text ends");
  expect_refused("causal causal", "expected '&', '|' or the end of the text, found 'causal'");
  expect_refused("causal)", "expected '&', '|' or the end of the text, found ')'");
  expect_refused("causal + 1", "found '+', at character 8");
  expect_refused("\xffoo\x1b", "expected a mask, found '?', at character 1\n  ?oo?\n  ^");
  expect_refused("causal(\xc3\xa4)", "expected an argument, found '?', at character 8");
}

TEST(MaskText, AMisspeltNameGetsASuggestion) {
  expect_refused("casual",
                 "there is no mask 'casual' (did you mean 'causal'?), expected one of none");
  expect_refused("sliding_windw(2, 0)", "(did you mean 'sliding_window'?)");
  EXPECT_THAT([] { parse_mask("future"); },
              ThrowsMessage<InvalidArgument>(testing::Not(HasSubstr("did you mean"))));
}

TEST(MaskText, EveryMaskOfTheTableIsRead) {
  for (const MaskSyntax& mask : mask_syntax()) {
    EXPECT_FALSE(mask.shows.empty());
    try {
      // Lists may be empty; masks with numeric arguments need them.
      const bool is_list = mask.arguments.find("...") != std::string_view::npos;
      parse_mask(mask.name);
      EXPECT_TRUE(is_list || mask.arguments.empty()) << mask.name;
    } catch (const InvalidArgument& error) {
      EXPECT_THAT(error.what(), testing::Not(HasSubstr("there is no mask"))) << mask.name;
      EXPECT_NE(mask.arguments, "") << mask.name;
    }
  }
}

TEST(MaskText, ArgumentsAreWhatTheMaskTakes) {
  expect_refused("sliding_window(2)",
                 "expected RIGHT, a number or 'unbounded' here, at character 17");
  expect_refused("sliding_window", "expected LEFT, a number or 'unbounded' here, at character 15");
  expect_refused("sliding_window(2, 0, 3)", "expected an alignment: square, top_left, ");
  expect_refused("sliding_window(2, 0, offset)", "expected an alignment: ");
  expect_refused("sliding_window(2, 0, offset())", "expected an alignment: ");
  expect_refused("sliding_window(2, 0, offset(1, 2))", "expected an alignment: ");
  expect_refused("sliding_window(2, 0, square, square)", "this argument is one too many");
  expect_refused("columns(3, top_left)", "this argument is one too many");
  expect_refused("causal(1:2)", "expected an alignment: ");
  expect_refused("prefix(unbounded)", "expected a number, at character 8");
  expect_refused("prefix(3,)", "expected an argument, found ')', at character 10");
  expect_refused("prefix(3", "expected ',' or ')', but the text ends");
  expect_refused("prefix(-)", "expected an argument, found ')'");
  expect_refused("rows(3)", "expected a range BEGIN:END");
  expect_refused("rows(3:)", "expected a number, found ')'");
  expect_refused("random_blocks(1, 2, -3)", "expected a seed from 0 on");
  expect_refused("documents(0, 4, x)", "this argument is one too many");
  expect_refused("tree(-1, offset(9223372036854775808))",
                 "the number is too large, at character 17");
  // Errors of the mask itself are passed on.
  expect_refused("causal & strided(0)",
                 "strided: stride is 0, expected 1 to 4294967296, at character 10");
  expect_refused("tree(5)", "Mask::tree: parents[0] is 5");
}

TEST(MaskText, RefusesWhatNoTextSays) {
  const Tensor<bool> allowed({2, 3});
  const Mask masks[] = {Mask::allow(allowed), Mask::block(allowed),
                        Mask::where([](int, int, int, int) { return true; }),
                        Mask::blocks({.q_len = 2, .kv_len = 3, .row_begin = {0, 0}}),
                        Mask::additive(Tensor<float>({2, 3}))};
  for (const Mask& mask : masks) {
    expect_refused(mask.description(), "which cannot be read from text, at character 1\n");
    expect_refused((causal() & mask).description(), ", at character 10\n");
  }
}

TEST(MaskText, IsBounded) {
  const auto repeated = [](const std::string& text, int count) {
    std::string all;
    for (int i = 0; i < count; ++i) all += text;
    return all;
  };
  expect_same((repeated("(", 64) + "causal" + repeated(")", 64)).c_str(), causal());
  expect_refused(repeated("(", 65) + "causal" + repeated(")", 65),
                 "parentheses are more than 64 deep");
  expect_refused(repeated("(", 1000000), "parentheses are more than 64 deep");
  expect_refused(repeated("causal & ", 1000) + "causal", "more than 1000 masks");
  expect_refused(repeated(" ", (1 << 20) + 1), "the text has 1048577 characters, expected at most");
  expect_refused("prefix(99999999999999999999)", "the number is too large, at character 8");
  expect_refused("prefix(9223372036854775808)", "the number is too large, at character 8");
  expect_refused("prefix(-9223372036854775809)", "the number is too large, at character 8");
  expect_refused("prefix(-9223372036854775808)", "prefix: length is -9223372036854775808");
  expect_refused("random_blocks(1, 1, 18446744073709551616)", "the number is too large");
  // Long texts and long errors are shortened.
  try {
    parse_mask(repeated("causal | ", 900) + "x(" + repeated("1, ", 10000));
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_LT(std::string(error.what()).size(), 700U);
    EXPECT_THAT(error.what(), HasSubstr("\n  ...sal | causal | "));
  }
  try {
    parse_mask("documents(1" + repeated(", 1", 10000) + ")");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_LT(std::string(error.what()).size(), 700U);
  }
}

// Random masks with numeric arguments.

std::int64_t number(std::int64_t from, std::int64_t to) {
  return *rc::gen::oneOf(rc::gen::inRange<std::int64_t>(from, to), rc::gen::just(from));
}

std::vector<std::int64_t> numbers(std::int64_t from, std::int64_t to) {
  std::vector<std::int64_t> drawn(static_cast<std::size_t>(number(0, 5)));
  for (std::int64_t& one : drawn) one = number(from, to);
  return drawn;
}

Alignment drawn_alignment() {
  switch (number(0, 5)) {
    case 0:
      return Alignment::square();
    case 1:
      return Alignment::top_left();
    case 2:
      return Alignment::bottom_right();
    case 3:
      return Alignment::bottom_right(numbers(0, 9));
    default:
      return Alignment::offset(
          *rc::gen::oneOf(rc::gen::inRange<std::int64_t>(-9, 10),
                          rc::gen::element(std::numeric_limits<std::int64_t>::max(),
                                           std::numeric_limits<std::int64_t>::min())));
  }
}

Mask drawn_list() {
  switch (number(0, 4)) {
    case 0: {
      std::vector<std::int64_t> boundaries{0};
      for (const std::int64_t length : numbers(0, 9)) {
        boundaries.push_back(boundaries.back() + length);
      }
      return documents(boundaries);
    }
    case 1:
      return key_lengths(numbers(0, 9));
    case 2: {
      std::vector<std::int64_t> parents;
      for (std::int64_t i = number(0, 5); i > 0; --i) {
        parents.push_back(number(-1, static_cast<std::int64_t>(parents.size())));
      }
      return Mask::tree(parents, drawn_alignment());
    }
    default: {
      std::vector<RowRange> ranges;
      for (std::int64_t i = number(0, 5); i > 0; --i)
        ranges.push_back({number(-9, 9), number(-9, 9)});
      return Mask::rows(ranges);
    }
  }
}

Mask drawn_blocks() {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  switch (number(0, 4)) {
    case 0:
      return block_window(number(0, 5), kUnbounded, number(1, 90), drawn_alignment());
    case 1:
      return bigbird({.block = number(1, 90), .global = number(0, 5), .seed = seed},
                     drawn_alignment());
    default:
      return random_blocks({.count = number(0, 257),
                            .block = number(1, 90),
                            .seed = seed,
                            .only_past = *rc::gen::arbitrary<bool>()},
                           drawn_alignment());
  }
}

Mask drawn_one() {
  switch (number(0, 11)) {
    case 0:
      return causal(drawn_alignment());
    case 1:
      return sliding_window(number(0, 90), *rc::gen::element<std::int64_t>(0, 3, kUnbounded),
                            drawn_alignment());
    case 2:
      return prefix(number(0, 90), drawn_alignment());
    case 3:
      return global_tokens(number(0, 90), drawn_alignment());
    case 4:
      return strided(number(1, 90), drawn_alignment());
    case 5:
      return columns(number(1, 90));
    case 6:
      return dilated(number(0, 90), number(1, 90), drawn_alignment());
    case 7:
      return streaming(number(0, 90), number(1, 90), drawn_alignment());
    case 8:
      return drawn_list();
    case 9:
      return drawn_blocks();
    default:
      return *rc::gen::element(0, 1) == 0 ? sparse_transformer(number(1, 90), drawn_alignment())
                                          : longformer(number(0, 90), 2, drawn_alignment());
  }
}

Mask drawn_mask(int depth) {
  const std::int64_t kind = depth == 0 ? 0 : number(0, 4);
  if (kind < 2) return drawn_one();
  const Mask first = drawn_mask(depth - 1);
  const Mask second = drawn_mask(depth - 1);
  return kind == 2 ? first & second : first | second;
}

TEST(MaskText, EveryMaskOfNumbersComesBack) {
  EXPECT_TRUE(rc::check("parse_mask(m.description())", [] {
    const Mask mask = drawn_mask(4);
    const std::string text = mask.description();
    const Mask again = parse_mask(text);
    RC_ASSERT(again.description() == text);
    const ScoreShape shape{1, 2, 9, 9};
    try {
      count_visible(mask, shape);
    } catch (const InvalidArgument&) {
      return;  // it does not support these lengths
    }
    const auto expected = materialize_allow(mask, shape);
    const auto found = materialize_allow(again, shape);
    for (std::size_t i = 0; i < expected.elements().size(); ++i) {
      RC_ASSERT(found.elements()[i] == expected.elements()[i]);
    }
  }));
}

}  // namespace
}  // namespace heed
