// Tokens beside those of a text's words: added tokens such as "<|im_end|>", which are searched for
// in a text before it is split, and those that a model expects around its texts (post-processors).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "heed/core/function_ref.h"
#include "heed/text/tokenizer.h"
#include "text/normalizers.h"
#include "text/span.h"

namespace heed { inline namespace v0 { namespace text {

struct AddedToken {
  std::string content;
  std::int64_t id = 0;
  bool is_special = false;
  bool is_normalized = false;  // searched for in the normalised text, in its normalised form
  bool is_word = false;        // only where no adjacent character is a \w
  bool strips_left = false;    // takes the white space before it
  bool strips_right = false;
};

// A part of a text: an added token, or the text between two of them.
struct AddedMatch {
  Span span;
  const AddedToken* token;  // nullptr: text without a token
};

// Finds added tokens from left to right, at each place the longest.
class AddedTokenFinder {
 public:
  // The longest content of a token in bytes: each byte of a text takes up to this many steps.
  static constexpr std::size_t kLongest = 1024;

  // Adds a token that is searched for as `pattern`. The token must outlive the finder.
  void add(const AddedToken& token, std::string_view pattern);
  // Returns the number of bytes to skip if a special token there must not be found, or 0 to accept
  // the token.
  using Passed = FunctionRef<std::size_t(Span)>;

  // Divides a whole text, which is valid UTF-8, in order. As in the library that writes these
  // tokens, white space that a token takes may begin the next token. Then that token includes it
  // too, unless it also takes the white space before it.
  std::vector<AddedMatch> find(std::string_view text, Passed passed) const;

 private:
  using Node = std::uint32_t;

  // The longest token that begins at `at`, and its end; nullptr if there is none.
  const AddedToken* longest(std::string_view text, std::size_t at, std::size_t& end) const;

  std::array<bool, 256> first_bytes_{};
  std::unordered_map<std::uint64_t, Node> children_;  // by node << 8 | byte
  std::vector<const AddedToken*> tokens_{nullptr};    // the token that ends at a node
};

// An input text, or a token around it.
struct FramePart {
  enum class Kind { kFirstText, kSecondText, kToken } kind = Kind::kFirstText;
  std::int64_t id = 0;  // of a token
  std::int64_t type = 0;
};

// Removes leading and trailing white space of tokens from their ranges.
struct RangeTrimming {
  bool adds_space = false;  // a space that was added before the text is not removed
};

struct Framing {
  std::vector<FramePart> single{{}};
  std::vector<FramePart> pair;  // empty if there is no form for two texts
  std::optional<RangeTrimming> trimming;
};

// The white space around a token as it is written, in bytes of the text, and the token's
// characters.
struct WrittenSpaces {
  std::int64_t leading = 0;
  std::int64_t trailing = 0;
  std::int64_t characters = 0;
};
WrittenSpaces spaces_of(std::string_view token);

// The same for tokens that are parts of one text, in the order of their beginnings. Added tokens
// may take the same white space one after another: it is counted once.
class SpacesOfParts {
 public:
  WrittenSpaces of(std::string_view part);

 private:
  std::string_view last_;
  WrittenSpaces of_last_;
  bool last_is_white_ = false;  // all of it
};

// The range of a token that has these spaces.
TextRange trimmed(TextRange range, const WrittenSpaces& token, bool is_first,
                  const RangeTrimming& trimming);

// Returns the texts with or without the tokens of `parts`. `second` may be nullptr if no part is
// the second text.
Encoding framed(const std::vector<FramePart>& parts, const Encoding& first, const Encoding* second,
                bool adds_tokens);

}}}  // namespace heed::v0::text
