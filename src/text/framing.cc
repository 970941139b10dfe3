#include "text/framing.h"

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

namespace {

constexpr char32_t kByteLevelSpace = 0x120;  // the form of ' ' in byte-level tokens

// The bytes that a character of white space stands for; 0 for others.
std::int64_t space_size(Character character) {
  if (character.value == kByteLevelSpace) return 1;
  return is_space(character.value) ? static_cast<std::int64_t>(character.size) : 0;
}

std::int64_t leading_spaces(std::string_view token) {
  std::int64_t sum = 0;
  for (std::size_t at = 0; at < token.size();) {
    const Character character = character_at(token, at);
    if (space_size(character) == 0) break;
    sum += space_size(character);
    at += character.size;
  }
  return sum;
}

bool is_white(std::string_view token) {
  for (std::size_t at = 0; at < token.size();) {
    const Character character = character_at(token, at);
    if (space_size(character) == 0) return false;
    at += character.size;
  }
  return true;
}

std::int64_t trailing_spaces(std::string_view token) {
  std::int64_t sum = 0;
  for (std::size_t end = token.size(); end > 0;) {
    const Character character = character_before(token, end);
    if (space_size(character) == 0) break;
    sum += space_size(character);
    end -= character.size;
  }
  return sum;
}

}  // namespace

WrittenSpaces spaces_of(std::string_view token) {
  return {leading_spaces(token), trailing_spaces(token),
          static_cast<std::int64_t>(count_characters(token))};
}

WrittenSpaces SpacesOfParts::of(std::string_view part) {
  const bool is_end_of_last =
      part.data() >= last_.data() && part.data() + part.size() == last_.data() + last_.size();
  if (last_is_white_ && is_end_of_last) {
    const std::string_view before = last_.substr(0, last_.size() - part.size());
    const WrittenSpaces less = spaces_of(before);
    of_last_.leading -= less.leading;
    of_last_.trailing -= less.trailing;
    of_last_.characters -= less.characters;
  } else {
    of_last_ = spaces_of(part);
    last_is_white_ = is_white(part);
  }
  last_ = part;
  return of_last_;
}

TextRange trimmed(TextRange range, const WrittenSpaces& token, bool is_first,
                  const RangeTrimming& trimming) {
  std::int64_t leading = token.leading;
  // A token that has fewer bytes in the text than it writes begins with a space that was added.
  const bool is_longer = range.end - range.begin < token.characters;
  const bool is_added = is_longer || ((is_first || range.begin == 0) && leading == 1);
  if (leading > 0 && trimming.adds_space && is_added) --leading;
  range.begin = std::min(range.begin + leading, range.end);
  range.end = std::max(range.end - token.trailing, range.begin);
  return range;
}

Encoding framed(const std::vector<FramePart>& parts, const Encoding& first, const Encoding* second,
                bool adds_tokens) {
  Encoding result;
  for (const FramePart& part : parts) {
    if (part.kind == FramePart::Kind::kToken) {
      if (!adds_tokens) continue;
      result.ids.push_back(part.id);
      result.ranges.emplace_back();
      result.type_ids.push_back(part.type);
      continue;
    }
    const Encoding& text = part.kind == FramePart::Kind::kFirstText ? first : *second;
    result.ids.insert(result.ids.end(), text.ids.begin(), text.ids.end());
    result.ranges.insert(result.ranges.end(), text.ranges.begin(), text.ranges.end());
    result.type_ids.insert(result.type_ids.end(), text.ids.size(), part.type);
  }
  return result;
}

}}}  // namespace heed::v0::text
