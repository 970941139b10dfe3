#include "text/split_patterns.h"

#include <array>

#include "text/code_points.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

constexpr std::array<SplitPattern, 3> kPatterns{SplitPattern::kGpt2, SplitPattern::kLlama3,
                                                SplitPattern::kQwen2};

bool is_newline(char32_t value) noexcept { return value == '\r' || value == '\n'; }

// The characters [^\s\p{L}\p{N}].
bool is_symbol(char32_t value) noexcept {
  return !is_space(value) && !is_letter(value) && !is_number(value);
}

// Matches the pattern from left to right.
class Scanner {
 public:
  Scanner(std::string_view text, SplitPattern pattern) : text_(text), pattern_(pattern) {}

  // The end of the match that begins at `at`. The alternatives are tried in order.
  std::size_t match(std::size_t at) const {
    std::size_t end = contraction(at);
    if (end == at) end = letters(at);
    if (end == at) end = numbers(at);
    if (end == at) end = symbols(at);
    return end == at ? spaces(at) : end;
  }

 private:
  bool is_gpt2() const { return pattern_ == SplitPattern::kGpt2; }

  template <class Is>
  bool starts(std::size_t at, const Is& is) const {
    return at < text_.size() && is(character_at(text_, at).value);
  }

  // The end of the longest run, up to `limit` characters, of characters for which `is` is true.
  template <class Is>
  std::size_t run(std::size_t at, const Is& is, std::size_t limit = std::string_view::npos) const {
    for (; limit > 0 && at < text_.size(); --limit) {
      const Character character = character_at(text_, at);
      if (!is(character.value)) break;
      at += character.size;
    }
    return at;
  }

  // The lower-case ASCII letter that the character matches; GPT-2's pattern is case-sensitive, the
  // others are not. U+017F is the long s, whose upper case is S.
  char letter(std::size_t& at) const {
    constexpr char32_t kLongS = 0x17F;
    if (at >= text_.size()) return '\0';
    const auto [value, size] = character_at(text_, at);
    at += size;
    if (value >= 'a' && value <= 'z') return static_cast<char>(value);
    if (is_gpt2()) return '\0';
    if (value >= 'A' && value <= 'Z') return static_cast<char>(value + 0x20);
    return value == kLongS ? 's' : '\0';
  }

  // Matches 's|'t|'re|'ve|'m|'ll|'d.
  std::size_t contraction(std::size_t at) const {
    if (text_[at] != '\'') return at;
    std::size_t end = at + 1;
    const char first = letter(end);
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return end;
    const char second = letter(end);
    const bool is_pair = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                         (first == 'l' && second == 'l');
    return is_pair ? end : at;
  }

  // Matches ` ?\p{L}+` for GPT-2, `[^\r\n\p{L}\p{N}]?\p{L}+` for the others.
  std::size_t letters(std::size_t at) const {
    std::size_t begin = at;
    const auto [value, size] = character_at(text_, at);
    const bool leads =
        is_gpt2() ? value == ' ' : !is_newline(value) && !is_letter(value) && !is_number(value);
    if (leads) begin += size;
    const std::size_t end = run(begin, is_letter);
    return end == begin ? at : end;
  }

  // Matches ` ?\p{N}+`, `\p{N}{1,3}` or `\p{N}`.
  std::size_t numbers(std::size_t at) const {
    if (!is_gpt2()) return run(at, is_number, pattern_ == SplitPattern::kLlama3 ? 3 : 1);
    const std::size_t begin = at + (text_[at] == ' ' ? 1 : 0);
    const std::size_t end = run(begin, is_number);
    return end == begin ? at : end;
  }

  // Matches ` ?[^\s\p{L}\p{N}]+`, for all but GPT-2 followed by `[\r\n]*`.
  std::size_t symbols(std::size_t at) const {
    const std::size_t begin = at + (text_[at] == ' ' ? 1 : 0);
    const std::size_t end = run(begin, is_symbol);
    if (end == begin) return at;
    return is_gpt2() ? end : run(end, is_newline);
  }

  // Matches `\s+(?!\S)|\s+`, for all but GPT-2 after trying `\s*[\r\n]+`, which ends at the last
  // line break of the white space.
  std::size_t spaces(std::size_t at) const {
    const std::size_t end = run(at, is_space);
    if (!is_gpt2()) {
      for (std::size_t last = end; last > at; --last) {
        if (is_newline(static_cast<unsigned char>(text_[last - 1]))) return last;
      }
    }
    if (end == text_.size()) return end;
    const std::size_t without_last = end - character_before(text_, end).size;
    return without_last == at ? end : without_last;
  }

  std::string_view text_;
  SplitPattern pattern_;
};

}  // namespace

std::string_view pattern_text(SplitPattern pattern) {
  switch (pattern) {
    case SplitPattern::kGpt2:
      return R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
    case SplitPattern::kLlama3:
      return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
             R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
    case SplitPattern::kQwen2:
      break;
  }
  return R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
         R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
}

const SplitPattern* find_pattern(std::string_view text) {
  for (const SplitPattern& pattern : kPatterns) {
    if (pattern_text(pattern) == text) return &pattern;
  }
  return nullptr;
}

void append_matches(std::vector<Span>& matches, std::string_view text, Span part,
                    SplitPattern pattern) {
  const Scanner scanner(text.substr(part.begin, part.end - part.begin), pattern);
  for (std::size_t at = part.begin; at < part.end;) {
    const std::size_t end = part.begin + scanner.match(at - part.begin);
    matches.push_back({at, end});
    at = end;
  }
}

}}}  // namespace heed::v0::text
