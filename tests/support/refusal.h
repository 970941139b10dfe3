// Expects refused calls: the type of the error, the name of what is refused and the value found.
// The wording around them may change; tests of messages themselves compare their text.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "heed/core/error.h"

namespace heed::testing_support {

// Returns the first place from `from` on at which `word` stands in `text`, and not as a part of a
// longer name or number; npos if there is none.
inline std::size_t find_word(std::string_view text, std::string_view word, std::size_t from) {
  const auto continues = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  for (std::size_t at = text.find(word, from); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    const std::string_view after = text.substr(at + word.size());
    if (continues(word.front()) && continues(before)) continue;
    if (is_digit(word.front()) && (before == '-' || before == '.')) continue;
    if (after.empty() || !continues(word.back())) return at;
    const bool has_fraction =
        is_digit(word.back()) && after.size() > 1 && after[0] == '.' && is_digit(after[1]);
    if (!continues(after[0]) && !has_fraction) return at;
  }
  return std::string_view::npos;
}

// True if `argument` stands in the message and `found` behind it, in the same part of the
// sentence: "window: left is -1, expected at least 0" names "left" and "-1".
inline bool names(std::string_view message, std::string_view argument, std::string_view found) {
  for (std::size_t at = find_word(message, argument, 0); at != std::string_view::npos;
       at = find_word(message, argument, at + 1)) {
    const std::size_t value = find_word(message, found, at + argument.size());
    if (value == std::string_view::npos) return false;
    const std::string_view between =
        message.substr(at + argument.size(), value - at - argument.size());
    if (between.find_first_of(",;") == std::string_view::npos &&
        between.find("expected") == std::string_view::npos) {
      return true;
    }
  }
  return false;
}

MATCHER_P2(Names, argument, found,
           std::string(negation ? "does not name '" : "names '") + argument +
               "' and what it is, '" + found + "'") {
  return names(arg, argument, found);
}

// Matches a call that throws an Error whose message names `argument` and the value `found`.
template <class Error = InvalidArgument>
// NOLINTNEXTLINE(readability-identifier-naming): named as GoogleMock's matchers are
auto Refuses(std::string argument, std::string found) {
  return testing::ThrowsMessage<Error>(Names(std::move(argument), std::move(found)));
}

// What a message says: an argument and the value found, {"left", "-1"}, or a text that it contains.
class Message {
 public:
  Message(std::string argument, std::string found)
      : matcher_(Names(std::move(argument), std::move(found))) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as matchers take a text
  Message(const char* text) : matcher_(testing::HasSubstr(std::string(text))) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  Message(const std::string& text) : matcher_(testing::HasSubstr(text)) {}

  // NOLINTNEXTLINE(google-explicit-constructor): as the matcher that it is
  operator testing::Matcher<std::string>() const { return matcher_; }

 private:
  testing::Matcher<std::string> matcher_;
};

// Expects an InvalidArgument whose message says this.
inline void expect_refused(const std::function<void()>& call, const Message& message) {
  EXPECT_THAT(call, testing::ThrowsMessage<InvalidArgument>(message));
}

}  // namespace heed::testing_support
