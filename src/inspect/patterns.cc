#include "heed/inspect/patterns.h"

#include <utility>

namespace heed { inline namespace v0 { namespace inspect {

namespace {

using KeyList = std::vector<std::int64_t>;

constexpr const char* kSourceClark = "Clark et al. 2019: more than half of the attention";
constexpr const char* kSourceOwn = "heed's own: more than half of the attention";

template <class T>
const T& value_of(const std::vector<T>& values, std::int64_t index) {
  return values[static_cast<std::size_t>(index)];
}
bool value_of(const std::vector<bool>& values, std::int64_t index) {
  return values[static_cast<std::size_t>(index)];
}

// The keys for which `has` is true.
template <class Has>
void append_where(const TokenSequence& tokens, KeyList& keys, Has has) {
  for (std::int64_t key = 0; key < tokens.length(); ++key) {
    if (has(key)) keys.push_back(key);
  }
}

void append_at(const TokenSequence& tokens, std::int64_t key, KeyList& keys) {
  if (key >= 0 && key < tokens.length()) keys.push_back(key);
}

void append_separators(const TokenSequence& tokens, std::int64_t /*query*/, KeyList& keys) {
  append_where(tokens, keys,
               [&](std::int64_t key) { return key > 0 && value_of(tokens.is_special, key); });
}

void append_punctuation(const TokenSequence& tokens, std::int64_t /*query*/, KeyList& keys) {
  append_where(tokens, keys,
               [&](std::int64_t key) { return value_of(tokens.is_punctuation, key); });
}

void append_same_word(const TokenSequence& tokens, std::int64_t query, KeyList& keys) {
  const std::int64_t word = value_of(tokens.words, query);
  if (word < 0) return;
  append_where(tokens, keys, [&](std::int64_t key) {
    return key != query && value_of(tokens.words, key) == word;
  });
}

void append_duplicates(const TokenSequence& tokens, std::int64_t query, KeyList& keys) {
  if (value_of(tokens.is_special, query)) return;
  append_where(tokens, keys, [&](std::int64_t key) {
    return key != query && value_of(tokens.ids, key) == value_of(tokens.ids, query);
  });
}

void append_induction(const TokenSequence& tokens, std::int64_t query, KeyList& keys) {
  if (value_of(tokens.is_special, query)) return;
  for (std::int64_t key = 1; key < query; ++key) {
    if (value_of(tokens.ids, key - 1) == value_of(tokens.ids, query)) keys.push_back(key);
  }
}

}  // namespace

TokenPattern previous_token() {
  return {.name = "previous token",
          .looks_at = "the token before",
          .source = kSourceClark,
          .keys = [](const TokenSequence& tokens, std::int64_t query, KeyList& keys) {
            append_at(tokens, query - 1, keys);
          }};
}

TokenPattern next_token() {
  return {.name = "next token",
          .looks_at = "the token behind",
          .source = kSourceClark,
          .keys = [](const TokenSequence& tokens, std::int64_t query, KeyList& keys) {
            append_at(tokens, query + 1, keys);
          }};
}

TokenPattern same_token() {
  return {.name = "same token",
          .looks_at = "itself",
          .source = kSourceClark,
          .keys = [](const TokenSequence& tokens, std::int64_t query, KeyList& keys) {
            append_at(tokens, query, keys);
          }};
}

TokenPattern first_token() {
  return {.name = "first token",
          .looks_at = "the first token of the text",
          .source = kSourceClark,
          .keys = [](const TokenSequence& tokens, std::int64_t /*query*/, KeyList& keys) {
            append_at(tokens, 0, keys);
          }};
}

TokenPattern separators() {
  return {.name = "separators",
          .looks_at = "special tokens behind the first",
          .source = kSourceClark,
          .keys = append_separators};
}

TokenPattern punctuation() {
  return {.name = "punctuation",
          .looks_at = "punctuation",
          .source = kSourceClark,
          .keys = append_punctuation};
}

TokenPattern same_word() {
  return {.name = "same word",
          .looks_at = "other tokens of the same word",
          .source = kSourceOwn,
          .keys = append_same_word};
}

TokenPattern duplicate_token() {
  return {.name = "duplicate token",
          .looks_at = "other occurrences of the same token",
          .source = kSourceOwn,
          .keys = append_duplicates};
}

TokenPattern induction() {
  return {.name = "induction",
          .looks_at = "what came after the same token before",
          .threshold = 0.4,
          .source =
              "prefix matching of Olsson et al. 2022, who name no threshold: 0.4 is usual in "
              "courses",
          .keys = append_induction};
}

std::vector<TokenPattern> text_patterns() {
  return {previous_token(), next_token(),  same_token(), first_token(),
          separators(),     punctuation(), same_word(),  duplicate_token()};
}

}}}  // namespace heed::v0::inspect
