#include "text/pattern_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "core/printable.h"
#include "text/code_points.h"
#include "text/pattern.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

constexpr int kDeepest = 16;              // groups and sets inside each other
constexpr std::size_t kLongest = 4096;    // bytes of a pattern
constexpr std::uint32_t kMostTimes = 64;  // a repetition is written out this often

// Reads a pattern from left to right.
class Parser {
 public:
  Parser(std::string_view text, std::vector<CharacterClass>& classes)
      : text_(text), classes_(classes) {}

  PatternNode parse() {
    if (text_.size() > kLongest) throw PatternError("is too large");
    PatternNode root = alternatives();
    if (at_ < text_.size()) fail(1);
    return root;
  }

 private:
  using Kind = PatternNode::Kind;

  [[noreturn]] void fail(std::size_t size) const {
    if (at_ >= text_.size()) throw PatternError("ends in the middle");
    std::size_t end = std::min(at_ + size, text_.size());
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0U) == 0x80) ++end;
    throw PatternError(fmt::format("has '{}' at byte {}, which heed does not know",
                                   io::printable(text_.substr(at_, end - at_)), at_));
  }

  bool is_at(std::string_view part) const { return text_.substr(at_).starts_with(part); }
  bool skip(std::string_view part) {
    if (!is_at(part)) return false;
    at_ += part.size();
    return true;
  }
  void expect(std::string_view part) {
    if (!skip(part)) fail(1);
  }
  char32_t next_character() {
    if (at_ >= text_.size()) fail(1);
    const auto [value, size] = character_at(text_, at_);
    at_ += size;
    return value;
  }

  PatternNode alternatives() {
    if (++depth_ > kDeepest) throw PatternError("has too many groups inside each other");
    PatternNode choice{Kind::kChoice};
    do choice.parts.push_back(sequence());
    while (skip("|"));
    --depth_;
    if (choice.parts.size() > 1) return choice;
    return std::move(choice.parts.front());
  }

  PatternNode sequence() {
    PatternNode all{Kind::kSequence};
    while (at_ < text_.size() && text_[at_] != '|' && text_[at_] != ')') {
      const std::size_t begin = at_;
      PatternNode part = item();
      all.parts.push_back(repeated(std::move(part), begin));
    }
    return all;
  }

  PatternNode item() {
    if (skip("(?:")) return group(ignores_case_);
    if (skip("(?i:")) return group(true);
    if (is_at("(?=") || is_at("(?!")) return ahead();
    if (is_at("(?")) fail(3);
    if (skip("(")) return group(ignores_case_);
    if (skip("$")) return {Kind::kLineEnd};
    return character();
  }

  PatternNode group(bool ignores_case) {
    const bool before = std::exchange(ignores_case_, ignores_case);
    PatternNode inside = alternatives();
    ignores_case_ = before;
    expect(")");
    return inside;
  }

  PatternNode ahead() {
    PatternNode node{Kind::kAhead};
    node.is_negated = is_at("(?!");
    at_ += 3;
    node.character_class = character().character_class;
    expect(")");
    return node;
  }

  PatternNode character() {
    CharacterClass set;
    if (skip("[")) {
      set = inside_of_set();
    } else if (skip(".")) {
      set.add('\n', '\n');
      set.negate();
    } else if (is_at("\\")) {
      escape(set);
    } else if (at_ < text_.size() &&
               std::string_view("^?*+{})]").find(text_[at_]) != std::string_view::npos) {
      fail(1);
    } else {
      const char32_t value = next_character();
      set.add(value, value);
    }
    if (ignores_case_) {
      // Other characters have case foldings of several characters.
      if (!set.is_ascii()) throw PatternError("ignores the case of more than ASCII's characters");
      set.ignore_case();
    }
    PatternNode node{Kind::kCharacter};
    node.character_class = static_cast<std::uint32_t>(classes_.size());
    classes_.push_back(std::move(set));
    return node;
  }

  // Reads an escape, which it adds to a set. Returns the character if it stands for one.
  std::optional<char32_t> escape(CharacterClass& set) {
    constexpr std::string_view kThemselves = R"(\.^$|?*+()[]{}-/&'"#~ )";
    const std::size_t begin = at_++;
    const char32_t letter = next_character();
    std::optional<char32_t> value;
    CharacterClass part;
    switch (letter) {
      case 'p':
      case 'P': {
        expect("{");
        const std::size_t end = std::min(text_.find('}', at_), text_.size());
        const auto bits = categories_of(text_.substr(at_, end - at_));
        if (!bits || end == text_.size()) {
          at_ = begin;
          fail(end + 1 - begin);
        }
        at_ = end + 1;
        part.add_categories(*bits);
        break;
      }
      case 's':
      case 'S':
        part.add_white_space();
        break;
      case 'd':
      case 'D':
        part.add_categories(*categories_of("Nd"));
        break;
      case 'r':
        value = '\r';
        break;
      case 'n':
        value = '\n';
        break;
      case 't':
        value = '\t';
        break;
      default:
        if (letter >= 0x80 || kThemselves.find(static_cast<char>(letter)) == kThemselves.npos) {
          at_ = begin;
          fail(2);
        }
        value = letter;
    }
    if (value) {
      set.add(*value, *value);
    } else {
      if (letter == 'P' || letter == 'S' || letter == 'D') part.negate();
      set.add(std::move(part));
    }
    return value;
  }

  CharacterClass inside_of_set() {
    if (++depth_ > kDeepest) throw PatternError("has too many groups inside each other");
    CharacterClass set;
    const bool is_negated = skip("^");
    if (is_at("]") || is_at(":")) fail(1);
    while (!skip("]")) {
      if (is_at("&&")) fail(2);
      if (skip("[")) {
        set.add(inside_of_set());
        continue;
      }
      const std::optional<char32_t> first =
          is_at("\\") ? escape(set) : std::optional<char32_t>(next_character());
      if (!first) continue;
      const bool is_range = is_at("-") && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
      if (!is_range) {
        set.add(*first, *first);
        continue;
      }
      const std::size_t begin = at_++;
      CharacterClass ignored;
      if (is_at("[")) fail(1);
      const std::optional<char32_t> last =
          is_at("\\") ? escape(ignored) : std::optional<char32_t>(next_character());
      if (!last || *last < *first) {
        at_ = begin;
        fail(2);
      }
      set.add(*first, *last);
    }
    if (is_negated) set.negate();
    --depth_;
    return set;
  }

  std::uint32_t count() {
    std::uint32_t value = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc() || value > kMostTimes) fail(1);
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  // The item that begins at `begin` with what is behind it.
  PatternNode repeated(PatternNode part, std::size_t begin) {
    PatternNode node{Kind::kRepeat};
    bool may_be_possessive = true;
    if (skip("?")) {
      node.least = 0;
    } else if (skip("*")) {
      node.least = 0;
      node.most = PatternNode::kEndless;
    } else if (skip("+")) {
      node.most = PatternNode::kEndless;
    } else if (skip("{")) {
      node.least = count();
      node.most = node.least;
      if (skip(",")) node.most = is_at("}") ? PatternNode::kEndless : count();
      expect("}");
      if (node.most < node.least || node.most == 0) throw PatternError("has an empty repetition");
      may_be_possessive = false;
    } else {
      return part;
    }
    if (may_be_possessive && is_at("+") && part.kind == Kind::kCharacter) {
      ++at_;
      node.is_possessive = true;
      node.character_class = part.character_class;
    }
    if (at_ < text_.size() && std::string_view("?*+{").find(text_[at_]) != std::string_view::npos) {
      fail(1);
    }
    if (least_size(part) == 0) {
      throw PatternError(fmt::format("repeats '{}', which matches the empty text",
                                     io::printable(text_.substr(begin, at_ - begin))));
    }
    node.parts.push_back(std::move(part));
    return node;
  }

  std::string_view text_;
  std::vector<CharacterClass>& classes_;
  std::size_t at_ = 0;
  int depth_ = 0;
  bool ignores_case_ = false;
};

}  // namespace

std::size_t least_size(const PatternNode& node) {
  const auto size = [](const PatternNode& part) { return least_size(part); };
  switch (node.kind) {
    case PatternNode::Kind::kCharacter:
      return 1;
    case PatternNode::Kind::kAhead:
    case PatternNode::Kind::kLineEnd:
      return 0;
    case PatternNode::Kind::kSequence:
      return std::any_of(node.parts.begin(), node.parts.end(), size) ? 1 : 0;
    case PatternNode::Kind::kChoice:
      return std::all_of(node.parts.begin(), node.parts.end(), size) ? 1 : 0;
    case PatternNode::Kind::kRepeat:
      return node.least > 0 ? least_size(node.parts.front()) : 0;
  }
  return 0;
}

PatternNode parse_pattern(std::string_view text, std::vector<CharacterClass>& classes) {
  return Parser(text, classes).parse();
}

}}}  // namespace heed::v0::text
