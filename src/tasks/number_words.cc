#include "heed/tasks/number_words.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace tasks {

namespace {

using Words = std::array<std::string_view, 20>;
using Tens = std::array<std::string_view, 10>;

template <std::size_t n>
std::string word(const std::array<std::string_view, n>& words, std::int64_t index) {
  return std::string(words[static_cast<std::size_t>(index)]);
}

// Returns `left separator right`, or the only part that is not empty.
std::string joined(const std::string& left, std::string_view separator, const std::string& right) {
  if (left.empty() || right.empty()) return left + right;
  return left + std::string(separator) + right;
}

// All functions below return an empty text for 0.

std::string english_below_1000(std::int64_t number) {
  static constexpr Words kWords{"",        "one",     "two",       "three",    "four",
                                "five",    "six",     "seven",     "eight",    "nine",
                                "ten",     "eleven",  "twelve",    "thirteen", "fourteen",
                                "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
  static constexpr Tens kTens{"",      "",      "twenty",  "thirty", "forty",
                              "fifty", "sixty", "seventy", "eighty", "ninety"};
  if (number < 20) return word(kWords, number);
  if (number < 100) return joined(word(kTens, number / 10), "-", word(kWords, number % 10));
  return joined(word(kWords, number / 100) + " hundred", " ", english_below_1000(number % 100));
}

std::string english(std::int64_t number) {
  const std::string thousands =
      number < 1000 ? "" : english_below_1000(number / 1000) + " thousand";
  return joined(thousands, " ", english_below_1000(number % 1000));
}

std::string french_below_100(std::int64_t number) {
  static constexpr Words kWords{"",       "un",    "deux",     "trois",    "quatre",
                                "cinq",   "six",   "sept",     "huit",     "neuf",
                                "dix",    "onze",  "douze",    "treize",   "quatorze",
                                "quinze", "seize", "dix-sept", "dix-huit", "dix-neuf"};
  static constexpr Tens kTens{"",          "dix",      "vingt",    "trente",       "quarante",
                              "cinquante", "soixante", "soixante", "quatre-vingt", "quatre-vingt"};
  if (number < 20) return word(kWords, number);
  if (number == 80) return "quatre-vingts";
  const bool counts_from_ten = number / 10 == 7 || number / 10 == 9;
  const std::int64_t unit = number % 10 + (counts_from_ten ? 10 : 0);
  const bool has_et = number < 80 && number % 10 == 1;
  return joined(word(kTens, number / 10), has_et ? " et " : "-", word(kWords, unit));
}

std::string french_below_1000(std::int64_t number) {
  if (number < 100) return french_below_100(number);
  const std::string rest = french_below_100(number % 100);
  if (number < 200) return joined("cent", " ", rest);
  return french_below_100(number / 100) + (rest.empty() ? " cents" : " cent " + rest);
}

// A number of thousands: vingt and cent take their s only at the end of a number.
std::string french_before_mille(std::int64_t number) {
  if (number == 1) return "";
  std::string words = french_below_1000(number);
  const bool is_plural = number % 100 == 80 || (number % 100 == 0 && number > 100);
  if (is_plural) words.pop_back();
  return words;
}

std::string french(std::int64_t number) {
  const std::string thousands =
      number < 1000 ? "" : joined(french_before_mille(number / 1000), " ", "mille");
  return joined(thousands, " ", french_below_1000(number % 1000));
}

// The unit "one" is "eins" at the end of a number, otherwise "ein".
std::string german_below_1000(std::int64_t number, std::string_view one) {
  static constexpr Words kWords{"",         "ein",      "zwei",     "drei",     "vier",
                                "fünf",     "sechs",    "sieben",   "acht",     "neun",
                                "zehn",     "elf",      "zwölf",    "dreizehn", "vierzehn",
                                "fünfzehn", "sechzehn", "siebzehn", "achtzehn", "neunzehn"};
  static constexpr Tens kTens{"",        "zehn",    "zwanzig", "dreißig", "vierzig",
                              "fünfzig", "sechzig", "siebzig", "achtzig", "neunzig"};
  if (number >= 100) {
    return word(kWords, number / 100) + "hundert" + german_below_1000(number % 100, one);
  }
  if (number == 1) return std::string(one);
  if (number < 20) return word(kWords, number);
  return joined(word(kWords, number % 10), "und", word(kTens, number / 10));
}

std::string german(std::int64_t number) {
  const std::string thousands =
      number < 1000 ? "" : german_below_1000(number / 1000, "ein") + "tausend";
  return thousands + german_below_1000(number % 1000, "eins");
}

}  // namespace

std::string number_words(std::int64_t number, Language language) {
  if (number < 0 || number > kMaxNumber) {
    throw InvalidArgument(
        fmt::format("number_words: number is {}, expected 0 to {}", number, kMaxNumber));
  }
  switch (language) {
    case Language::kEnglish:
      return number == 0 ? "zero" : english(number);
    case Language::kFrench:
      return number == 0 ? "zéro" : french(number);
    case Language::kGerman:
      break;
  }
  return number == 0 ? "null" : german(number);
}

}}}  // namespace heed::v0::tasks
