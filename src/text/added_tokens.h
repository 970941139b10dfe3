// Tokens that are searched for in a text before it is split, e.g. "<|im_end|>".
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "heed/core/function_ref.h"
#include "text/normalizers.h"
#include "text/split_patterns.h"

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

}}}  // namespace heed::v0::text
