#include "heed/tasks/number_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unordered_set>

#include "heed/core/error.h"
#include "support/refusal.h"

namespace heed::tasks { namespace {

using testing_support::Refuses;

struct Known {
  std::int64_t number;
  const char* english;
  const char* french;
  const char* german;
};

// From grammars: each rule and its exceptions.
constexpr Known kKnown[] = {
    {0, "zero", "zéro", "null"},
    {1, "one", "un", "eins"},
    {7, "seven", "sept", "sieben"},
    {11, "eleven", "onze", "elf"},
    {12, "twelve", "douze", "zwölf"},
    {16, "sixteen", "seize", "sechzehn"},
    {17, "seventeen", "dix-sept", "siebzehn"},
    {20, "twenty", "vingt", "zwanzig"},
    {21, "twenty-one", "vingt et un", "einundzwanzig"},
    {22, "twenty-two", "vingt-deux", "zweiundzwanzig"},
    {30, "thirty", "trente", "dreißig"},
    {61, "sixty-one", "soixante et un", "einundsechzig"},
    {66, "sixty-six", "soixante-six", "sechsundsechzig"},
    {70, "seventy", "soixante-dix", "siebzig"},
    {71, "seventy-one", "soixante et onze", "einundsiebzig"},
    {77, "seventy-seven", "soixante-dix-sept", "siebenundsiebzig"},
    {80, "eighty", "quatre-vingts", "achtzig"},
    {81, "eighty-one", "quatre-vingt-un", "einundachtzig"},
    {90, "ninety", "quatre-vingt-dix", "neunzig"},
    {91, "ninety-one", "quatre-vingt-onze", "einundneunzig"},
    {99, "ninety-nine", "quatre-vingt-dix-neuf", "neunundneunzig"},
    {100, "one hundred", "cent", "einhundert"},
    {101, "one hundred one", "cent un", "einhunderteins"},
    {116, "one hundred sixteen", "cent seize", "einhundertsechzehn"},
    {180, "one hundred eighty", "cent quatre-vingts", "einhundertachtzig"},
    {200, "two hundred", "deux cents", "zweihundert"},
    {201, "two hundred one", "deux cent un", "zweihunderteins"},
    {280, "two hundred eighty", "deux cent quatre-vingts", "zweihundertachtzig"},
    {1000, "one thousand", "mille", "eintausend"},
    {1001, "one thousand one", "mille un", "eintausendeins"},
    {1100, "one thousand one hundred", "mille cent", "eintausendeinhundert"},
    {2000, "two thousand", "deux mille", "zweitausend"},
    {2200, "two thousand two hundred", "deux mille deux cents", "zweitausendzweihundert"},
    {21000, "twenty-one thousand", "vingt et un mille", "einundzwanzigtausend"},
    {80000, "eighty thousand", "quatre-vingt mille", "achtzigtausend"},
    {80080, "eighty thousand eighty", "quatre-vingt mille quatre-vingts", "achtzigtausendachtzig"},
    {100000, "one hundred thousand", "cent mille", "einhunderttausend"},
    {101001, "one hundred one thousand one", "cent un mille un", "einhunderteintausendeins"},
    {180000, "one hundred eighty thousand", "cent quatre-vingt mille", "einhundertachtzigtausend"},
    {200000, "two hundred thousand", "deux cent mille", "zweihunderttausend"},
    {271001, "two hundred seventy-one thousand one", "deux cent soixante et onze mille un",
     "zweihunderteinundsiebzigtausendeins"},
    {999999, "nine hundred ninety-nine thousand nine hundred ninety-nine",
     "neuf cent quatre-vingt-dix-neuf mille neuf cent quatre-vingt-dix-neuf",
     "neunhundertneunundneunzigtausendneunhundertneunundneunzig"}};

TEST(NumberWords, AreThoseOfTheGrammars) {
  for (const auto& known : kKnown) {
    EXPECT_EQ(number_words(known.number, Language::kEnglish), known.english);
    EXPECT_EQ(number_words(known.number, Language::kFrench), known.french);
    EXPECT_EQ(number_words(known.number, Language::kGerman), known.german);
  }
}

TEST(NumberWords, AreDifferentForDifferentNumbers) {
  for (const Language language : {Language::kEnglish, Language::kFrench, Language::kGerman}) {
    std::unordered_set<std::string> seen;
    // All numbers below 1000, alone and as thousands, and steps that use every digit.
    for (std::int64_t number = 0; number < 1000; ++number) {
      EXPECT_TRUE(seen.insert(number_words(number, language)).second) << number;
      if (number > 0) {
        EXPECT_TRUE(seen.insert(number_words(1000 * number, language)).second) << number;
      }
    }
    for (std::int64_t number = 1001; number <= kMaxNumber; number += 97) {
      if (number % 1000 != 0) {
        EXPECT_TRUE(seen.insert(number_words(number, language)).second) << number;
      }
    }
  }
}

TEST(NumberWords, RefuseOtherNumbers) {
  EXPECT_THAT([] { number_words(-1, Language::kFrench); }, Refuses("number", "-1"));
  EXPECT_THROW(number_words(1000000, Language::kGerman), InvalidArgument);
}

}  // namespace
}  // namespace heed::tasks
