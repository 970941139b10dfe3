// WordPiece: the longest token that a word begins with, then the longest that continues it, and so
// on. Source: WordpieceTokenizer of
// https://github.com/google-research/bert/blob/master/tokenization.py
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/model.h"

namespace heed { inline namespace v0 { namespace text {

struct WordPieceOptions {
  std::int64_t unknown = 0;           // for a word that no sequence of tokens makes up
  std::string prefix = "##";          // of tokens that continue a word
  std::int64_t max_characters = 100;  // longer words are unknown
};

class WordPiece : public Model {
 public:
  WordPiece(const TokenTable& tokens, const WordPieceOptions& options);
  void tokenize(std::string_view piece, std::vector<PieceToken>& tokens) const override;

 private:
  using Node = std::uint32_t;

  void add(Node root, std::string_view token, std::int64_t id);
  // The longest token in the tree below `root` that piece[begin…] starts with. Its end is `begin`
  // if there is none.
  PieceToken longest(Node root, std::string_view piece, std::size_t begin) const;

  WordPieceOptions options_;
  std::unordered_map<std::uint64_t, Node> children_;  // by node << 8 | byte
  std::vector<std::int64_t> ids_{-1, -1};  // of the tokens that end at a node; -1 if none
};

}}}  // namespace heed::v0::text
