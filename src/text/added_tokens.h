// Tokens that are found in a text before it is split, e.g. "<|im_end|>".
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
  bool is_normalized = false;  // looked for in the normalised text, as its normalised content
  bool is_word = false;        // only where no \w stands beside it
  bool strips_left = false;    // white space before it is part of it
  bool strips_right = false;
};

// A part of a text that is such a token, or one between them.
struct AddedMatch {
  Span span;
  const AddedToken* token;  // nullptr: none
};

// Finds the leftmost token, of those that begin there the longest, and so on behind it.
class AddedTokenFinder {
 public:
  // The longest content that is looked for, in bytes: a text is searched in as many steps a byte.
  static constexpr std::size_t kLongest = 1024;

  // `pattern` is what is looked for. The token must outlive the finder.
  void add(const AddedToken& token, std::string_view pattern);
  // How many bytes of a special token that stands there are passed over; 0: it is found.
  using Passed = FunctionRef<std::size_t(Span)>;

  // All of a text, which is valid UTF-8, in its order. As in the library that writes these tokens,
  // white space that a token takes may be the beginning of the next token, which then has it too,
  // or has lost it if it takes the white space before it.
  std::vector<AddedMatch> find(std::string_view text, Passed passed) const;

 private:
  using Node = std::uint32_t;

  // What begins at `at`: its token and its end; nullptr: none.
  const AddedToken* longest(std::string_view text, std::size_t at, std::size_t& end) const;

  std::array<bool, 256> first_bytes_{};
  std::unordered_map<std::uint64_t, Node> children_;  // by node << 8 | byte
  std::vector<const AddedToken*> tokens_{nullptr};    // that end at a node
};

}}}  // namespace heed::v0::text
