#include "text/token_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/printable.h"
#include "heed/core/error.h"
#include "text/code_points.h"

namespace heed { inline namespace v0 { namespace text {

namespace {

using io::printable;

// Returns the error in the ids, which must be 0, 1, … in order; empty if there is none.
std::string problem_of_ids(const std::vector<TokenEntry>& sorted) {
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const auto& [token, id] = sorted[i];
    if (id == static_cast<std::int64_t>(i)) continue;
    if (id < 0) return fmt::format("the token '{}' has the id {}", printable(token), id);
    if (i > 0 && id == sorted[i - 1].id) {
      return fmt::format("the tokens '{}' and '{}' have the same id {}",
                         printable(sorted[i - 1].token), printable(token), id);
    }
    return fmt::format("no token has the id {}, though '{}' has {}", i, printable(token), id);
  }
  return "";
}

}  // namespace

TokenTable::TokenTable(std::vector<TokenEntry> model, const std::vector<TokenEntry>& added,
                       const std::string& file, std::int64_t byte) {
  std::unordered_map<std::string, std::int64_t> ids;
  const auto fail = [&](const std::string& problem) { throw FormatError(file, byte, problem); };
  const auto add = [&](const TokenEntry& entry) {
    const auto [found, is_new] = ids.emplace(entry.token, entry.id);
    if (found->second != entry.id) {
      fail(fmt::format("the token '{}' has two ids, {} and {}", printable(entry.token),
                       found->second, entry.id));
    }
    return is_new;
  };
  for (const TokenEntry& entry : model) {
    if (!add(entry)) fail(fmt::format("the token '{}' is listed twice", printable(entry.token)));
  }
  const std::size_t model_size = model.size();
  std::vector<TokenEntry> entries = std::move(model);
  for (const TokenEntry& entry : added) {
    if (add(entry)) entries.push_back(entry);
  }
  std::vector<std::int64_t> model_ids;
  for (std::size_t i = 0; i < model_size; ++i) model_ids.push_back(entries[i].id);
  std::stable_sort(entries.begin(), entries.end(),
                   [](const TokenEntry& a, const TokenEntry& b) { return a.id < b.id; });
  if (const std::string problem = problem_of_ids(entries); !problem.empty()) fail(problem);

  in_model_.resize(entries.size(), false);
  for (const std::int64_t id : model_ids) in_model_[static_cast<std::size_t>(id)] = true;
  tokens_.reserve(entries.size());
  for (TokenEntry& entry : entries) tokens_.push_back(std::move(entry.token));
  ids_.reserve(tokens_.size());
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    ids_.emplace(tokens_[i], static_cast<std::int64_t>(i));
  }
}

std::optional<std::int64_t> TokenTable::find(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::optional<std::int64_t> TokenTable::find_in_model(std::string_view token) const {
  const auto found = find(token);
  return found && is_in_model(*found) ? found : std::nullopt;
}

namespace {

constexpr ByteTrie::Node kFirstTokens = 0;
constexpr ByteTrie::Node kLaterTokens = 1;

}  // namespace

WordPiece::WordPiece(const TokenTable& tokens, const WordPieceOptions& options)
    : options_(options) {
  for (std::int64_t id = 0; id < tokens.size(); ++id) {
    if (!tokens.is_in_model(id)) continue;
    const std::string_view token = tokens.token(id);
    const auto add = [&](ByteTrie::Node root, const std::string& prefix) {
      if (token.size() <= prefix.size() || !token.starts_with(prefix)) return;
      tokens_.value(root, token.substr(prefix.size())) = id;
    };
    add(kFirstTokens, options.first_prefix);
    add(kLaterTokens, options.prefix);
  }
}

PieceToken WordPiece::longest(ByteTrie::Node root, std::string_view piece,
                              std::size_t begin) const {
  PieceToken best{-1, begin, begin};
  tokens_.find(root, piece, begin, [&](std::int64_t id, std::size_t end) {
    best = {id, begin, end};
  });
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
