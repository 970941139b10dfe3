// Byte-pair encoding: of all adjacent tokens in a piece, those that the model learned to merge
// first are merged first. Source: https://arxiv.org/abs/1508.07909
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/model.h"
#include "text/split_patterns.h"

namespace heed { inline namespace v0 { namespace text {

struct BytePairOptions {
  // for a character without a token; if absent, such characters are dropped
  std::optional<std::int64_t> unknown;
  bool fuses_unknown = false;   // consecutive unknown characters are one token
  bool falls_back = false;      // unknown characters become the tokens <0x00> … <0xFF>
  bool ignores_merges = false;  // a piece that is a token is that token
  std::string prefix;           // of the tokens of all characters but the first of a piece
  std::string suffix;           // of the token of the last character
};

class BytePairs : public Model {
 public:
  static constexpr std::int64_t kByPlace = -1;

  // Two tokens and the token that they make. Merges of a lower rank come first; within a rank, the
  // leftmost. Without a rank, it is the position in the list.
  struct Merge {
    std::int64_t first;
    std::int64_t second;
    std::int64_t made;
    std::int64_t rank = kByPlace;
  };

  // `tokens` must outlive this object.
  BytePairs(const TokenTable& tokens, const std::vector<Merge>& merges,
            const BytePairOptions& options);
  // Takes O(n log n) time for a piece of n bytes.
  void tokenize(std::string_view piece, std::vector<PieceToken>& tokens) const override;

 private:
  struct Rank {
    std::uint32_t rank;
    std::uint32_t made;
  };
  class Merging;

  void append_characters(std::string_view piece, std::vector<PieceToken>& tokens) const;
  std::optional<std::int64_t> token_of(std::string_view piece, std::size_t begin,
                                       std::size_t end) const;
  void append_unknown(Span part, std::vector<PieceToken>& tokens) const;
  const Rank* find(std::int64_t first, std::int64_t second) const;

  const TokenTable& tokens_;
  BytePairOptions options_;
  std::unordered_map<std::uint64_t, Rank> ranks_;  // by first << 32 | second
  std::array<std::int64_t, 256> bytes_;            // of the tokens <0x00> … <0xFF>; -1 if missing
};

}}}  // namespace heed::v0::text
