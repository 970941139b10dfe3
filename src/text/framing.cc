#include "text/framing.h"

#include <algorithm>

#include "text/code_points.h"

namespace heed { inline namespace v0 { namespace text {
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
