// The "precompiled charsmap" of SentencePiece: strings and what replaces each, as a double array.
//
//     4 bytes      size of the array in bytes, little-endian
//     the array    units of 4 bytes, of the layout of https://github.com/s-yata/darts-clone
//     the rest     replacements, each followed by a NUL
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/normalizers.h"

namespace heed { inline namespace v0 { namespace text {

class CharacterMap {
 public:
  // The problem in the bytes of a map, e.g. "has 3 bytes"; empty if it can be read.
  static std::string problem_of(std::string_view bytes);
  // `bytes` must have no problem.
  explicit CharacterMap(std::string_view bytes);

  // A string that a text begins with, by its size, and what replaces it.
  struct Match {
    std::size_t size;
    std::string_view replacement;
  };
  std::optional<Match> shortest(std::string_view text) const { return find(text, true); }
  std::optional<Match> longest(std::string_view text) const { return find(text, false); }

 private:
  std::optional<Match> find(std::string_view text, bool stops_at_first) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

// Replaces what the map has, as SentencePiece does: from left to right, at each place the longest.
AlignedText replace_longest(const AlignedText& text, const CharacterMap& map);

// The same as the library `tokenizers` does: each character that a reader sees if it has fewer than
// 6 bytes, otherwise each of its code points, by the shortest string that it begins with.
AlignedText replace_clusters(const AlignedText& text, const CharacterMap& map);

// The bytes that Base64 stands for; nothing if the text is not Base64 with its padding.
std::optional<std::string> bytes_of_base64(std::string_view text);

}}}  // namespace heed::v0::text
