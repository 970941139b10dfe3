#include "text/word_piece.h"

#include "text/code_points.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

constexpr std::uint32_t kFirstTokens = 0;
constexpr std::uint32_t kLaterTokens = 1;

std::uint64_t edge(std::uint32_t node, char byte) {
  return std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
}

}  // namespace

WordPiece::WordPiece(const TokenTable& tokens, const WordPieceOptions& options)
    : options_(options) {
  for (std::int64_t id = 0; id < tokens.size(); ++id) {
    if (!tokens.is_in_model(id)) continue;
    const std::string_view token = tokens.token(id);
    add(kFirstTokens, token, id);
    if (token.starts_with(options.prefix)) {
      add(kLaterTokens, token.substr(options.prefix.size()), id);
    }
  }
}

void WordPiece::add(Node root, std::string_view token, std::int64_t id) {
  Node node = root;
  for (const char byte : token) {
    const auto [child, is_new] =
        children_.emplace(edge(node, byte), static_cast<Node>(ids_.size()));
    if (is_new) ids_.push_back(-1);
    node = child->second;
  }
  if (node != root) ids_[node] = id;
}

PieceToken WordPiece::longest(Node root, std::string_view piece, std::size_t begin) const {
  PieceToken best{-1, begin, begin};
  Node node = root;
  for (std::size_t at = begin; at < piece.size(); ++at) {
    const auto child = children_.find(edge(node, piece[at]));
    if (child == children_.end()) break;
    node = child->second;
    if (ids_[node] >= 0) best = {ids_[node], begin, at + 1};
  }
  return best;
}

void WordPiece::tokenize(std::string_view piece, std::vector<PieceToken>& tokens) const {
  const bool is_too_long =
      static_cast<std::int64_t>(count_characters(piece)) > options_.max_characters;
  std::size_t at = 0;
  while (!is_too_long && at < piece.size()) {
    const PieceToken next = longest(at == 0 ? kFirstTokens : kLaterTokens, piece, at);
    if (next.end == at) break;
    tokens.push_back(next);
    at = next.end;
  }
  if (at == piece.size()) return;
  tokens.clear();
  tokens.push_back({options_.unknown, 0, piece.size()});
}

}}}  // namespace heed::v0::text
