#include "text/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/unicode.h"
#include "text/code_points.h"
#include "text/jinja/python_text.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

void fail_at(const Place& place, const std::string& problem) {
  throw FormatError("the chat template", static_cast<std::int64_t>(place.byte),
                    fmt::format("line {}: {}", place.line, problem));
}

namespace {

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Line breaks are "\n", and one at the end is removed.
std::string with_plain_lines(std::string_view source) {
  std::string result;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      result += source[i];
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      result += '\n';
    }
  }
  if (result.ends_with('\n')) result.pop_back();
  return result;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> tokens() {
    while (at_ < source_.size()) {
      read_text();
      if (at_ < source_.size()) read_tag();
    }
    add(Token::Kind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const { fail_at(place_of(at_), problem); }

  Place place_of(std::size_t byte) const {
    const auto begin = source_.begin() + static_cast<std::ptrdiff_t>(counted_);
    const auto end = source_.begin() + static_cast<std::ptrdiff_t>(std::max(byte, counted_));
    line_ += static_cast<int>(std::count(begin, end, '\n'));
    counted_ = std::max(byte, counted_);
    return {line_, byte};
  }

  void add(Token::Kind kind, std::string text) {
    tokens_.push_back({kind, std::move(text), place_of(at_)});
  }

  bool is_at(std::string_view text) const {
    return std::string_view(source_).substr(at_, text.size()) == text;
  }

  void skip_space() {
    while (at_ < source_.size()) {
      const Character next = character_at(source_, at_);
      if (!is_python_space(next.value)) return;
      at_ += next.size;
    }
  }

  // Reads text up to a tag, and removes the white space that the tag takes.
  void read_text() {
    std::size_t end = at_;
    for (;; ++end) {
      end = source_.find('{', end);
      if (end >= source_.size()) end = source_.size();
      if (end + 1 >= source_.size()) {
        end = source_.size();
        break;
      }
      const char next = source_[end + 1];
      if (next == '{' || next == '%' || next == '#') break;
    }
    std::string_view text = std::string_view(source_).substr(at_, end - at_);
    if (end < source_.size()) {
      const char sign = end + 2 < source_.size() ? source_[end + 2] : '\0';
      text = before_tag(text, sign, source_[end + 1] == '{');
    }
    if (!text.empty()) add(Token::Kind::kText, std::string(text));
    at_ = end;
  }

  std::string_view before_tag(std::string_view text, char sign, bool is_output) const {
    if (sign == '-') return stripped(text, Sides::kRight);
    if (sign == '+' || is_output) return text;
    const std::size_t line = text.rfind('\n') + 1;  // 0 if there is none
    if (line == 0 && !starts_line_) return text;
    const std::string_view indentation = text.substr(line);
    return stripped(indentation, Sides::kRight).empty() ? text.substr(0, line) : text;
  }

  // Skips a tag's end and the white space that it takes.
  void end_tag(std::string_view end, bool takes_line) {
    const char sign = source_[at_];
    if (sign == '-' || sign == '+') ++at_;
    at_ += end.size();
    const std::size_t begin = at_;
    if (sign == '-') skip_space();
    if (sign != '-' && sign != '+' && takes_line && is_at("\n")) ++at_;
    starts_line_ = at_ > begin && source_[at_ - 1] == '\n';
  }

  bool is_at_end(std::string_view end) const {
    if (is_at(end)) return true;
    const bool has_sign = is_at("-") || (is_at("+") && end != "}}");
    return has_sign && std::string_view(source_).substr(at_ + 1, end.size()) == end;
  }

  void read_tag() {
    const char type = source_[at_ + 1];
    if (type == '#') return read_comment();
    if (type == '%' && read_raw()) return;
    add(type == '%' ? Token::Kind::kBlockBegin : Token::Kind::kOutputBegin, "");
    at_ += 2;
    if (is_at("-") || is_at("+")) ++at_;
    const std::string_view end = type == '%' ? "%}" : "}}";
    const Place begin = tokens_.back().place;
    std::vector<char> open;
    for (;;) {
      skip_space();
      if (at_ >= source_.size()) fail_at(begin, "a tag that does not end");
      if (open.empty() && is_at_end(end)) break;
      read_token(open);
    }
    add(type == '%' ? Token::Kind::kBlockEnd : Token::Kind::kOutputEnd, "");
    end_tag(end, type == '%');
  }

  void read_comment() {
    std::size_t begin = at_ + 2;
    if (begin < source_.size() && (source_[begin] == '-' || source_[begin] == '+')) ++begin;
    const std::size_t end = source_.find("#}", begin);
    if (end == std::string::npos) fail("a comment that does not end");
    const bool has_sign = end > begin && (source_[end - 1] == '-' || source_[end - 1] == '+');
    at_ = has_sign ? end - 1 : end;
    end_tag("#}", true);
  }

  // True if there was {% word %} at `byte`, which is moved behind the word.
  bool skip_tag_word(std::size_t& byte, std::string_view word) const {
    std::size_t i = byte + 2;
    if (i < source_.size() && (source_[i] == '-' || source_[i] == '+')) ++i;
    i = std::min(source_.find_first_not_of(" \t\n", i), source_.size());
    if (std::string_view(source_).substr(i, word.size()) != word) return false;
    i = std::min(source_.find_first_not_of(" \t\n", i + word.size()), source_.size());
    const std::string_view rest = std::string_view(source_).substr(i);
    if (!rest.starts_with("%}") && !rest.starts_with("-%}") && !rest.starts_with("+%}"))
      return false;
    byte = i;
    return true;
  }

  bool read_raw() {
    const std::size_t begin = at_;
    if (!skip_tag_word(at_, "raw")) return false;
    end_tag("%}", false);
    for (std::size_t end = at_;; ++end) {
      end = source_.find("{%", end);
      if (end == std::string::npos) fail_at(place_of(begin), "a raw block that does not end");
      std::size_t behind = end;
      if (!skip_tag_word(behind, "endraw")) continue;
      const std::string_view text = std::string_view(source_).substr(at_, end - at_);
      add(Token::Kind::kText, std::string(before_tag(text, source_[end + 2], false)));
      at_ = behind;
      end_tag("%}", true);
      return true;
    }
  }

  void read_token(std::vector<char>& open) {
    const char c = source_[at_];
    if (c == '\'' || c == '"') return read_string(c);
    if (is_digit(c)) return read_number();
    if (is_name_start(c)) {
      std::size_t end = at_;
      while (end < source_.size() && (is_name_start(source_[end]) || is_digit(source_[end]))) ++end;
      add(Token::Kind::kName, source_.substr(at_, end - at_));
      at_ = end;
      return;
    }
    read_operator(open);
  }

  void read_operator(std::vector<char>& open) {
    constexpr std::array<std::string_view, 6> kPairs{"**", "//", "==", "!=", "<=", ">="};
    const auto* const pair = std::find_if(kPairs.begin(), kPairs.end(),
                                          [&](std::string_view text) { return is_at(text); });
    const std::string text = pair != kPairs.end() ? std::string(*pair) : source_.substr(at_, 1);
    if (text.size() == 1 &&
        std::string_view("+-*/%~<>=.,:|()[]{}").find(text) == std::string_view::npos) {
      fail(fmt::format("'{}' is not part of an expression", io::printable(text)));
    }
    if (text == "(" || text == "[" || text == "{") open.push_back(text[0]);
    if (text == ")" || text == "]" || text == "}") {
      const char expected = text == ")" ? '(' : text == "]" ? '[' : '{';
      if (open.empty() || open.back() != expected) fail(fmt::format("an unexpected '{}'", text));
      open.pop_back();
    }
    add(Token::Kind::kOperator, text);
    at_ += text.size();
  }

  void read_number() {
    std::size_t end = at_;
    if (source_[at_] == '0' && at_ + 1 < source_.size() && is_name_start(source_[at_ + 1])) {
      fail("a number that is not decimal, which heed does not know");
    }
    const auto digits = [&] {
      while (end < source_.size() && (is_digit(source_[end]) || source_[end] == '_')) ++end;
    };
    digits();
    bool is_float = false;
    if (end + 1 < source_.size() && source_[end] == '.' && is_digit(source_[end + 1])) {
      is_float = true;
      ++end;
      digits();
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      std::size_t exponent = end + 1;
      if (exponent < source_.size() && (source_[exponent] == '+' || source_[exponent] == '-')) {
        ++exponent;
      }
      if (exponent < source_.size() && is_digit(source_[exponent])) {
        is_float = true;
        end = exponent;
        digits();
      }
    }
    std::string text = source_.substr(at_, end - at_);
    std::erase(text, '_');
    if (!is_float && text[0] == '0' && text.find_first_not_of('0') != std::string::npos) {
      fail("an integer that begins with 0");
    }
    add(is_float ? Token::Kind::kFloat : Token::Kind::kInteger, text);
    at_ = end;
  }

  void read_string(char quote) {
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size()) fail("a string that does not end");
    const auto text = unescaped(std::string_view(source_).substr(at_ + 1, end - at_ - 1));
    if (!text) fail("a string with an escape that stands for no character");
    add(Token::Kind::kString, *text);
    at_ = end + 1;
  }

  std::string source_;
  std::size_t at_ = 0;
  bool starts_line_ = true;
  mutable std::size_t counted_ = 0;  // bytes whose lines are counted in line_
  mutable int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source) {
  if (const auto byte = unicode::find_invalid(source)) {
    fail_at({1, *byte}, "the template is not valid UTF-8");
  }
  return Lexer(with_plain_lines(source)).tokens();
}

}}}}  // namespace heed::v0::text::jinja
