/// Numbers as words.
#pragma once

#include <cstdint>
#include <string>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace tasks {

/// The languages of number_words().
enum class Language { kEnglish, kFrench, kGerman };

/// The largest number that number_words() supports.
inline constexpr std::int64_t kMaxNumber = 999'999;

/// A whole number as a cardinal number in words:
///
///   - English as in America, without "and": "two hundred one", "eighty-one"
///   - French as in France, in the spelling before 1990: "vingt et un", "soixante et onze",
///     "quatre-vingts", "quatre-vingt-un", "deux cents", "deux cent un", "deux cent mille",
///     "mille un"
///   - German in one word: "einundzwanzig", "einhunderteins", "einhunderteintausendeins"
///
/// @throws InvalidArgument when the number is not in [0, kMaxNumber].
HEED_API std::string number_words(std::int64_t number, Language language);

}}}  // namespace heed::v0::tasks
