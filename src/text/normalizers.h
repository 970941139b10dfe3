// A text on its way to tokens, with the origin of each of its bytes in the original, and
// normalisers, which change it before it is split.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/text/tokenizer.h"
#include "text/pattern.h"

namespace heed { inline namespace v0 { namespace text {

// A text in valid UTF-8.
class AlignedText {
 public:
  AlignedText() = default;
  // Bytes of the original, where they begin at `begin`.
  AlignedText(std::string_view bytes, std::size_t begin) : bytes_(bytes), begin_(begin) {}

  std::string_view bytes() const noexcept { return bytes_; }
  std::size_t size() const noexcept { return bytes_.size(); }

  // The bytes of the original that byte `at` comes from.
  TextRange origin(std::size_t at) const noexcept {
    if (!origins_.empty()) return origins_[at];
    const auto begin = static_cast<std::int64_t>(begin_ + at);
    return {begin, begin + 1};
  }
  // The origin of the bytes begin ≤ i < end, which must be at least one.
  TextRange origin(std::size_t begin, std::size_t end) const noexcept {
    return {origin(begin).begin, origin(end - 1).end};
  }

  AlignedText slice(std::size_t begin, std::size_t end) const;

 private:
  friend class AlignedWriter;

  std::string bytes_;
  std::vector<TextRange> origins_;  // one for each byte; empty if the bytes are the original's
  std::size_t begin_ = 0;
};

// Writes a new aligned text from another, from beginning to end.
class AlignedWriter {
 public:
  explicit AlignedWriter(const AlignedText& from);

  // Copies the bytes [begin, end) of the text.
  void copy(std::size_t begin, std::size_t end);
  // Adds other bytes, all with the same `origin`.
  void put(std::string_view bytes, TextRange origin);
  void put(char32_t value, TextRange origin);

  AlignedText take() { return std::move(to_); }

 private:
  const AlignedText& from_;
  AlignedText to_;
};

using Normalizer = std::function<AlignedText(AlignedText)>;

// Unicode's normalisation forms. The origin of a composed character covers all characters that it
// is composed of. Source: https://www.unicode.org/reports/tr15/
struct UnicodeForm {
  bool composes = false;    // NFC, NFKC
  bool compatible = false;  // NFKC, NFKD
};
AlignedText normalize_unicode(AlignedText text, UnicodeForm form);

// Converts each character to lower case.
AlignedText lower_case(AlignedText text);

// Removes characters of category M.
AlignedText strip_marks(const AlignedText& text);

// Replaces every occurrence of `pattern`, which is not empty, from left to right.
AlignedText replace_all(const AlignedText& text, const std::string& pattern,
                        const std::string& content);

// Replaces every match of `pattern`.
AlignedText replace_pattern(const AlignedText& text, const Pattern& pattern,
                            const std::string& content);

// Removes white space at the beginning and at the end.
AlignedText strip_space(const AlignedText& text, bool at_begin, bool at_end);

// The normalisation of neural machine translation: removes control characters of ASCII, and turns
// invisible characters into ' '. Source: the rules "nmt_nfkc" of SentencePiece
AlignedText normalize_nmt(const AlignedText& text);

// Turns bytes into their visible characters.
AlignedText show_bytes(const AlignedText& text);

// Puts `prefix` before a text that is not empty. The prefix has no bytes in the original.
AlignedText prepend(AlignedText text, const std::string& prefix);

// BERT's normalisation. Source: BasicTokenizer of
// https://github.com/google-research/bert/blob/master/tokenization.py
struct BertNormalization {
  bool cleans = true;          // removes control characters and turns white space into ' '
  bool spaces_han = true;      // puts ' ' around each character of the CJK blocks
  bool strips_accents = true;  // decomposes (NFD) and removes characters of category Mn
  bool lowers = true;
};
AlignedText normalize_bert(AlignedText text, const BertNormalization& options);

}}}  // namespace heed::v0::text
