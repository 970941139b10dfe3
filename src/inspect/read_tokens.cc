// The properties of tokens that patterns use: special tokens, punctuation, and words.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "heed/core/error.h"
#include "heed/inspect/patterns.h"
#include "io/unicode.h"

namespace heed { inline namespace v0 { namespace inspect {

namespace {

void check_encoding(const text::Encoding& encoding, std::string_view first,
                    std::string_view second) {
  const std::size_t count = encoding.ids.size();
  if (encoding.ranges.size() != count || encoding.type_ids.size() != count) {
    throw InvalidArgument(
        fmt::format("read_tokens: the encoding has {} ids, {} ranges and {} type ids, expected as "
                    "many of each",
                    count, encoding.ranges.size(), encoding.type_ids.size()));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const text::TextRange& range = encoding.ranges[i];
    const auto size =
        static_cast<std::int64_t>((encoding.type_ids[i] == 1 ? second : first).size());
    if (range.begin >= 0 && range.begin <= range.end && range.end <= size) continue;
    throw InvalidArgument(
        fmt::format("read_tokens: token {} has the bytes {} to {}, expected bytes of a text of {}",
                    i, range.begin, range.end, size));
  }
}

// True if a text has a visible character and consists of whole characters, none of them a letter or
// a digit.
bool is_all_punctuation(std::string_view text) {
  bool has_any = false;
  while (!text.empty()) {
    const auto point = unicode::first_code_point(text);
    if (!point || unicode::is_word_character(point->value)) return false;
    has_any = has_any || !unicode::is_whitespace(point->value);
    text.remove_prefix(point->size);
  }
  return has_any;
}

// True if the text at the offset begins with a letter, a digit, or the rest of a character.
bool begins_inside_word(std::string_view text, std::int64_t offset) {
  const auto point = unicode::first_code_point(text.substr(static_cast<std::size_t>(offset)));
  return !point || unicode::is_word_character(point->value);
}

// True if the text before the offset ends with a letter, a digit, or the beginning of a character.
bool ends_inside_word(std::string_view text, std::int64_t offset) {
  const auto end = static_cast<std::size_t>(offset);
  constexpr std::size_t kLongest = 4;  // bytes of a character
  for (std::size_t size = 1; size <= std::min(kLongest, end); ++size) {
    const auto point = unicode::first_code_point(text.substr(end - size, size));
    if (point && point->size == size) return unicode::is_word_character(point->value);
  }
  return true;
}

bool continues_word(const text::Encoding& encoding, std::size_t i, std::string_view text) {
  if (i == 0 || encoding.type_ids[i - 1] != encoding.type_ids[i]) return false;
  const text::TextRange& before = encoding.ranges[i - 1];
  const text::TextRange& range = encoding.ranges[i];
  if (before.begin == before.end) return false;
  // Tokens that are bytes of one character may have the same range.
  if (before == range) return true;
  return before.end == range.begin && ends_inside_word(text, before.end) &&
         begins_inside_word(text, range.begin);
}

}  // namespace

TokenSequence read_tokens(const text::Tokenizer& tokenizer, std::vector<std::int64_t> ids) {
  TokenSequence tokens;
  for (const std::int64_t id : ids) {
    if (id < 0 || id >= tokenizer.vocab_size()) {
      throw InvalidArgument(fmt::format("read_tokens: id {} is not in the vocabulary of {}", id,
                                        tokenizer.vocab_size()));
    }
    // An unknown token is a word all the same.
    tokens.is_special.push_back(tokenizer.is_special(id) &&
                                id != tokenizer.special_tokens().unknown);
  }
  tokens.is_punctuation.assign(ids.size(), false);
  tokens.words.assign(ids.size(), -1);
  tokens.ids = std::move(ids);
  return tokens;
}

TokenSequence read_tokens(const text::Tokenizer& tokenizer, const text::Encoding& encoding,
                          std::string_view first, std::string_view second) {
  check_encoding(encoding, first, second);
  TokenSequence tokens = read_tokens(tokenizer, encoding.ids);
  std::int64_t word = -1;
  for (std::size_t i = 0; i < encoding.ids.size(); ++i) {
    const std::string_view text = encoding.type_ids[i] == 1 ? second : first;
    const text::TextRange& range = encoding.ranges[i];
    if (tokens.is_special[i] || range.begin == range.end) continue;
    tokens.is_punctuation[i] = is_all_punctuation(text.substr(
        static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.end - range.begin)));
    if (tokens.is_punctuation[i]) continue;
    if (!continues_word(encoding, i, text)) ++word;
    tokens.words[i] = word;
  }
  return tokens;
}

}}}  // namespace heed::v0::inspect
