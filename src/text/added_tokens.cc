#include "text/added_tokens.h"

#include <algorithm>

#include "text/code_points.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

std::uint64_t branch(std::uint32_t node, char byte) {
  return std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
}

bool is_between_words(std::string_view text, Span span) {
  const bool follows = span.begin > 0 && is_word_part(character_before(text, span.begin).value);
  return !follows && (span.end == text.size() || !is_word_part(character_at(text, span.end).value));
}

std::size_t skip_spaces_left(std::string_view text, std::size_t at, std::size_t limit) {
  while (at > limit) {
    const auto [value, size] = character_before(text, at);
    if (!is_space(value)) break;
    at -= size;
  }
  return at;
}

std::size_t skip_spaces_right(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const auto [value, size] = character_at(text, at);
    if (!is_space(value)) break;
    at += size;
  }
  return at;
}

}  // namespace

void AddedTokenFinder::add(const AddedToken& token, std::string_view pattern) {
  if (pattern.empty()) return;
  first_bytes_[static_cast<unsigned char>(pattern.front())] = true;
  Node node = 0;
  for (const char byte : pattern) {
    const auto [child, is_new] =
        children_.emplace(branch(node, byte), static_cast<Node>(tokens_.size()));
    if (is_new) tokens_.push_back(nullptr);
    node = child->second;
  }
  if (tokens_[node] == nullptr) tokens_[node] = &token;
}

const AddedToken* AddedTokenFinder::longest(std::string_view text, std::size_t at,
                                            std::size_t& end) const {
  const AddedToken* best = nullptr;
  Node node = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    const auto child = children_.find(branch(node, text[i]));
    if (child == children_.end()) break;
    node = child->second;
    if (tokens_[node] != nullptr) {
      best = tokens_[node];
      end = i + 1;
    }
  }
  return best;
}

std::vector<AddedMatch> AddedTokenFinder::find(std::string_view text, Passed passed) const {
  std::vector<AddedMatch> matches;
  std::size_t done = 0;
  std::size_t spaces_end = 0;  // the end of the white space that a token took last
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    const AddedToken* token =
        first_bytes_[static_cast<unsigned char>(text[at])] ? longest(text, at, end) : nullptr;
    if (token == nullptr) {
      ++at;
      continue;
    }
    Span span{at, end};
    const std::size_t skipped = token->is_special ? passed(span) : 0;
    at = skipped > 0 ? at + std::min(skipped, end - at) : end;
    if (skipped > 0 || (token->is_word && !is_between_words(text, span))) continue;
    if (token->strips_right) {
      // Inside white space that was scanned before, the end is the same.
      if (span.end >= spaces_end) spaces_end = skip_spaces_right(text, span.end);
      span.end = spaces_end;
    }
    if (token->strips_left) span.begin = std::max(skip_spaces_left(text, span.begin, done), done);
    if (span.begin >= span.end) continue;  // the previous token has taken all of it
    if (done < span.begin) matches.push_back({{done, span.begin}, nullptr});
    matches.push_back({span, token});
    done = span.end;
  }
  if (done < text.size()) matches.push_back({{done, text.size()}, nullptr});
  return matches;
}

}}}  // namespace heed::v0::text
