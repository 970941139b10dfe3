// The unigram model of SentencePiece: of all sequences of tokens that make up a text, the one whose
// scores have the greatest sum. Source: https://arxiv.org/abs/1808.06226, equation 2
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "text/byte_trie.h"
#include "text/token_models.h"

namespace heed { inline namespace v0 { namespace text {

struct UnigramOptions {
  std::int64_t unknown = 0;  // for a character that is no token; neighbours are one token
  double unknown_score = 0;
  bool falls_back = false;  // unknown characters become the tokens <0x00> … <0xFF>
};

class Unigram : public Model {
 public:
  // The longest token in bytes, which bounds the time: see tokenize().
  static constexpr std::size_t kLongest = 1024;

  struct Piece {
    std::int64_t id;
    double score;  // finite
  };

  // `pieces` are the tokens that texts may contain, none empty or longer than kLongest.
  Unigram(const TokenTable& tokens, const std::vector<Piece>& pieces,
          const UnigramOptions& options);
  // Takes a time of O(n · the longest token) for a text of n bytes.
  void tokenize(std::string_view text, std::vector<PieceToken>& tokens) const override;

 private:
  void append(std::string_view text, Span part, std::vector<PieceToken>& tokens) const;

  UnigramOptions options_;
  ByteTrie places_;  // of the texts in pieces_
  std::vector<Piece> pieces_;
  std::vector<std::int64_t> bytes_;  // the 256 tokens; empty if one is missing
};

}}}  // namespace heed::v0::text
