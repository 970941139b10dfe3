#include "text/unigram.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "text/code_points.h"

namespace heed { inline namespace v0 { namespace text {

Unigram::Unigram(const TokenTable& tokens, const std::vector<Piece>& pieces,
                 const UnigramOptions& options)
    : options_(options), pieces_(pieces) {
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    places_.value(0, tokens.token(pieces_[i].id)) = static_cast<std::int64_t>(i);
  }
  if (!options.falls_back) return;
  for (int byte = 0; byte < 256; ++byte) {
    const auto id = tokens.find_in_model(fmt::format("<0x{:02X}>", byte));
    if (id) bytes_.push_back(*id);
  }
  if (bytes_.size() != 256) bytes_.clear();
}

void Unigram::append(std::string_view text, Span part, std::vector<PieceToken>& tokens) const {
  if (bytes_.empty()) {
    tokens.push_back({options_.unknown, part.begin, part.end});
    return;
  }
  for (std::size_t i = part.begin; i < part.end; ++i) {
    tokens.push_back({bytes_[static_cast<unsigned char>(text[i])], i, i + 1});
  }
}

void Unigram::tokenize(std::string_view text, std::vector<PieceToken>& tokens) const {
  // The best sequence of tokens that ends at a byte, by its last token.
  struct Best {
    double score = -std::numeric_limits<double>::infinity();
    std::size_t begin = 0;
    std::int64_t id = 0;
  };
  std::vector<Best> best(text.size() + 1);
  best[0].score = 0;
  for (std::size_t at = 0; at < text.size();) {
    const double before = best[at].score;
    const std::size_t next = at + character_at(text, at).size;
    const auto offer = [&](std::int64_t id, double score, std::size_t end) {
      // Of equal sums the first counts, as in the library that writes these files.
      if (before + score > best[end].score) best[end] = {before + score, at, id};
    };
    bool is_known = false;
    places_.find(0, text, at, [&](std::int64_t place, std::size_t end) {
      const Piece& piece = pieces_[static_cast<std::size_t>(place)];
      offer(piece.id, piece.score, end);
      is_known = is_known || end == next;
    });
    if (!is_known) offer(options_.unknown, options_.unknown_score, next);
    at = next;
  }
  std::vector<PieceToken> last_first;
  for (std::size_t end = text.size(); end > 0; end = best[end].begin) {
    const bool joins = best[end].id == options_.unknown && !last_first.empty() &&
                       last_first.back().id == options_.unknown;
    if (joins) {
      last_first.back().begin = best[end].begin;
    } else {
      last_first.push_back({best[end].id, best[end].begin, end});
    }
  }
  std::for_each(last_first.rbegin(), last_first.rend(), [&](const PieceToken& token) {
    if (token.id == options_.unknown) {
      append(text, {token.begin, token.end}, tokens);
    } else {
      tokens.push_back(token);
    }
  });
}

}}}  // namespace heed::v0::text
