// The tokens of a model by id and by text, and models, which turn a piece of a text into tokens.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/byte_trie.h"
#include "text/span.h"

namespace heed { inline namespace v0 { namespace text {

struct TokenEntry {
  std::string token;
  std::int64_t id = 0;
};

class TokenTable {
 public:
  // Takes the tokens that the model may produce, and added tokens, each of which is new or one of
  // the model's with the same id. Throws FormatError, naming `file` and `byte`, unless the ids are
  // 0, 1, … without gaps, each id has one token, and each token has one id.
  TokenTable(std::vector<TokenEntry> model, const std::vector<TokenEntry>& added,
             const std::string& file, std::int64_t byte);
  TokenTable(const TokenTable&) = delete;
  TokenTable& operator=(const TokenTable&) = delete;

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(tokens_.size()); }
  const std::string& token(std::int64_t id) const { return tokens_[static_cast<std::size_t>(id)]; }
  std::optional<std::int64_t> find(std::string_view token) const;
  // Searches only the tokens that the model may produce.
  std::optional<std::int64_t> find_in_model(std::string_view token) const;
  bool is_in_model(std::int64_t id) const { return in_model_[static_cast<std::size_t>(id)]; }

 private:
  std::vector<std::string> tokens_;
  std::vector<bool> in_model_;
  std::unordered_map<std::string_view, std::int64_t> ids_;
};

// A token, and the bytes of the piece that it covers.
struct PieceToken {
  std::int64_t id;
  std::size_t begin;
  std::size_t end;
};

class Model {
 public:
  Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual ~Model() = default;

  // Appends the tokens of a piece, which is valid UTF-8 and not empty, to `tokens`, which is empty.
  virtual void tokenize(std::string_view piece, std::vector<PieceToken>& tokens) const = 0;
};

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

struct WordPieceOptions {
  std::int64_t unknown = 0;           // for a word that no sequence of tokens makes up
  std::string first_prefix;           // of tokens that begin a word
  std::string prefix = "##";          // of tokens that continue a word
  std::int64_t max_characters = 100;  // longer words are unknown
};

class WordPiece : public Model {
 public:
  WordPiece(const TokenTable& tokens, const WordPieceOptions& options);
  void tokenize(std::string_view piece, std::vector<PieceToken>& tokens) const override;

 private:
  // The longest token in the tree below `root` that piece[begin…] starts with. Its end is `begin`
  // if there is none.
  PieceToken longest(ByteTrie::Node root, std::string_view piece, std::size_t begin) const;

  WordPieceOptions options_;
  ByteTrie tokens_{2};  // those that begin a word, and those that continue it
};

// Each piece is a token, or unknown.
class WordLevel : public Model {
 public:
  // `tokens` must outlive this object.
  WordLevel(const TokenTable& tokens, std::int64_t unknown) : tokens_(tokens), unknown_(unknown) {}
  void tokenize(std::string_view piece, std::vector<PieceToken>& tokens) const override {
    tokens.push_back({tokens_.find_in_model(piece).value_or(unknown_), 0, piece.size()});
  }

 private:
  const TokenTable& tokens_;
  std::int64_t unknown_;
};

// The merges of SentencePiece's BPE: any two adjacent tokens that form a token may be merged, those
// with the highest score first, at equal scores the leftmost. Source:
// https://github.com/google/sentencepiece/blob/master/src/bpe_model.cc
//
// `scores` has one number for each token, none of them NaN. Tokens that are not `is_made` never
// result from a merge.
std::vector<BytePairs::Merge> merges_of_scores(const TokenTable& tokens,
                                               const std::vector<double>& scores,
                                               const std::vector<bool>& is_made);

}}}  // namespace heed::v0::text
