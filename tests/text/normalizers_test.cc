#include "text/normalizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace heed::text { namespace {

std::string in_form(std::string_view text, UnicodeForm form) {
  return std::string(normalize_unicode(AlignedText(text, 0), form).bytes());
}

constexpr UnicodeForm kNfd{false, false};
constexpr UnicodeForm kNfc{true, false};
constexpr UnicodeForm kNfkd{false, true};
constexpr UnicodeForm kNfkc{true, true};

TEST(Normalizers, UnicodeForms) {
  EXPECT_EQ(in_form("\u00E9", kNfd), "e\u0301");
  EXPECT_EQ(in_form("e\u0301", kNfc), "\u00E9");
  EXPECT_EQ(in_form("\uFB01\u00B2", kNfc), "\uFB01\u00B2");
  EXPECT_EQ(in_form("\uFB01\u00B2", kNfkd), "fi2");
  EXPECT_EQ(in_form("\u1E9B\u0323", kNfkc), "\u1E69");
  // Composes and decomposes Hangul.
  EXPECT_EQ(in_form("\u1100\u1161\u11A8", kNfc), "\uAC01");
  EXPECT_EQ(in_form("\uAC01", kNfd), "\u1100\u1161\u11A8");
  // Sorts marks by class; an equal class in between blocks composition.
  EXPECT_EQ(in_form("a\u0301\u0323", kNfd), "a\u0323\u0301");
  EXPECT_EQ(in_form("a\u0315\u0300", kNfc), "\u00E0\u0315");
  EXPECT_EQ(in_form("a\u0305\u0301", kNfc), "a\u0305\u0301");
  // Excluded from composition.
  EXPECT_EQ(in_form("\u0958", kNfc), "\u0915\u093C");
}

TEST(Normalizers, AComposedCharacterStandsForAllItsParts) {
  const AlignedText text = normalize_unicode(AlignedText("xe\u0301y", 10), kNfc);
  EXPECT_EQ(text.bytes(), "x\u00E9y");
  EXPECT_EQ(text.origin(1), (TextRange{11, 14}));
  EXPECT_EQ(text.origin(3), (TextRange{14, 15}));
}

TEST(Normalizers, LowerCase) {
  const AlignedText text = lower_case(AlignedText("A\u0130\u03A3", 0));
  EXPECT_EQ(text.bytes(), "ai\u0307\u03C3");
  EXPECT_EQ(text.origin(2), (TextRange{1, 3}));
}

TEST(Normalizers, ReplacingAndPrepending) {
  const AlignedText text = replace_all(prepend(AlignedText("a b", 0), "_"), " ", "__");
  EXPECT_EQ(text.bytes(), "_a__b");
  EXPECT_EQ(text.origin(0), (TextRange{0, 0}));
  EXPECT_EQ(text.origin(2), (TextRange{1, 2}));
  EXPECT_EQ(text.origin(3), (TextRange{1, 2}));
  EXPECT_EQ(prepend(AlignedText("", 0), "_").bytes(), "");
  EXPECT_EQ(strip_marks(AlignedText("e\u0301\u0903", 0)).bytes(), "e");
}

TEST(Normalizers, Bert) {
  const auto normalized = [](std::string_view text, const BertNormalization& options) {
    return std::string(normalize_bert(AlignedText(text, 0), options).bytes());
  };
  EXPECT_EQ(normalized("\u00C9\u200B\t\uFFFDx\u732B", {}), "e x \u732B ");
  EXPECT_EQ(normalized("\u00C9\u200B\t\u732B", {false, false, false, true}),
            "\u00E9\u200B\t\u732B");
  EXPECT_EQ(normalized("\u00C9", {true, true, true, false}), "E");
}

}  // namespace
}  // namespace heed::text
