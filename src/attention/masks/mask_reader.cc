#include "attention/masks/mask_reader.h"

#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace detail {

namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// A text as shown in messages: on one line, with one character per byte, so that columns can be
// counted.
std::string printable(std::string_view text) {
  std::string shown(text);
  for (char& c : shown) {
    if (is_space(c)) c = ' ';
    if (c < ' ' || c > '~') c = '?';
  }
  return shown;
}

}  // namespace

void MaskReader::skip_spaces() noexcept {
  while (!is_at_end() && is_space(text_[place_])) ++place_;
}

bool MaskReader::take(char character) noexcept {
  if (is_at_end() || text_[place_] != character) return false;
  ++place_;
  skip_spaces();
  return true;
}

void MaskReader::expect(char character, std::string_view what) {
  if (!take(character)) refuse_next(what);
}

std::string_view MaskReader::take_word() noexcept {
  const std::size_t begin = place_;
  if (is_at_end() || !is_letter(text_[place_])) return {};
  while (!is_at_end() &&
         (is_letter(text_[place_]) || is_digit(text_[place_]) || text_[place_] == '_')) {
    ++place_;
  }
  const std::string_view word = text_.substr(begin, place_ - begin);
  skip_spaces();
  return word;
}

std::uint64_t MaskReader::number(std::string_view what) {
  if (is_at_end() || !is_digit(text_[place_])) refuse_next(what);
  std::uint64_t number = 0;
  const char* begin = text_.data() + place_;
  const auto [stopped, error] = std::from_chars(begin, text_.data() + text_.size(), number);
  if (error != std::errc()) refuse(place_, "the number is too large");
  place_ += static_cast<std::size_t>(stopped - begin);
  skip_spaces();
  return number;
}

void MaskReader::refuse(std::size_t place, std::string_view problem) const {
  constexpr std::size_t kShown = 60;  // characters on each side
  const std::size_t begin = place > kShown ? place - kShown : 0;
  const bool is_cut = begin + 2 * kShown < text_.size();
  const std::string dots = begin > 0 ? "..." : "";
  throw InvalidArgument(fmt::format("parse_mask: {}, at character {}\n  {}{}{}\n  {:>{}}", problem,
                                    place + 1, dots, printable(text_.substr(begin, 2 * kShown)),
                                    is_cut ? "..." : "", '^', dots.size() + place - begin + 1));
}

void MaskReader::refuse_next(std::string_view what) const {
  if (is_at_end()) refuse(place_, fmt::format("expected {}, but the text ends", what));
  MaskReader rest = *this;
  std::string_view found = rest.take_word();
  if (found.empty()) found = text_.substr(place_, 1);
  constexpr std::size_t kMostLetters = 40;
  refuse(place_,
         fmt::format("expected {}, found '{}'", what, printable(found.substr(0, kMostLetters))));
}

namespace {

WrittenNumber written_number(MaskReader& reader, std::string_view what) {
  WrittenNumber number{.place = reader.place()};
  number.is_negative = reader.take('-');
  number.magnitude = reader.number(what);
  return number;
}

MaskArgument argument_of(MaskReader& reader) {
  MaskArgument argument{.place = reader.place()};
  argument.word = reader.take_word();
  if (argument.word.empty()) {
    argument.numbers.push_back(written_number(reader, "an argument"));
    argument.is_range = reader.take(':');
    if (argument.is_range) argument.numbers.push_back(written_number(reader, "a number"));
    return argument;
  }
  argument.has_numbers = reader.take('(');
  if (!argument.has_numbers || reader.take(')')) return argument;
  do {
    argument.numbers.push_back(written_number(reader, "a number"));
  } while (reader.take(','));
  reader.expect(')', "',' or ')'");
  return argument;
}

}  // namespace

MaskArguments::MaskArguments(MaskReader& reader) : reader_(reader), end_(reader.place()) {
  if (!reader.take('(')) return;
  end_ = reader.place();
  if (reader.take(')')) return;
  do {
    arguments_.push_back(argument_of(reader));
  } while (reader.take(','));
  end_ = reader.place();
  reader.expect(')', "',' or ')'");
}

bool MaskArguments::is_next_number() const {
  return next_ < arguments_.size() && arguments_[next_].word.empty() && !arguments_[next_].is_range;
}

bool MaskArguments::is_next_word(std::string_view word) const {
  return next_ < arguments_.size() && arguments_[next_].word == word &&
         !arguments_[next_].has_numbers;
}

const MaskArgument& MaskArguments::take(bool is_right, std::string_view what) {
  if (!is_right) refuse(what);
  return arguments_[next_++];
}

void MaskArguments::refuse(std::string_view what) const {
  const bool is_missing = next_ == arguments_.size();
  reader_.refuse(is_missing ? end_ : arguments_[next_].place,
                 fmt::format("expected {}{}", what, is_missing ? " here" : ""));
}

std::int64_t MaskArguments::value_of(const WrittenNumber& number) const {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (number.magnitude > kMost + (number.is_negative ? 1 : 0)) {
    reader_.refuse(number.place, "the number is too large");
  }
  // Computed unsigned: the least number has no positive counterpart.
  return static_cast<std::int64_t>(number.is_negative ? 0 - number.magnitude : number.magnitude);
}

std::int64_t MaskArguments::number(std::string_view what) {
  return value_of(take(is_next_number(), what).numbers[0]);
}

std::uint64_t MaskArguments::seed() {
  const WrittenNumber& number = take(is_next_number(), "a seed").numbers[0];
  if (number.is_negative) reader_.refuse(number.place, "expected a seed from 0 on");
  return number.magnitude;
}

std::int64_t MaskArguments::side(std::string_view what) {
  return takes("unbounded") ? kUnbounded : number(what);
}

std::vector<std::int64_t> MaskArguments::numbers() {
  std::vector<std::int64_t> values;
  while (is_next_number()) values.push_back(number("a number"));
  return values;
}

std::vector<RowRange> MaskArguments::ranges() {
  std::vector<RowRange> values;
  while (next_ < arguments_.size()) {
    const auto& numbers = take(arguments_[next_].is_range, "a range BEGIN:END").numbers;
    values.push_back({value_of(numbers[0]), value_of(numbers[1])});
  }
  return values;
}

bool MaskArguments::takes(std::string_view word) {
  const bool is_next = is_next_word(word);
  if (is_next) ++next_;
  return is_next;
}

Alignment MaskArguments::alignment(Alignment otherwise) {
  if (next_ == arguments_.size()) return otherwise;
  if (takes("square")) return Alignment::square();
  if (takes("top_left")) return Alignment::top_left();
  if (takes("bottom_right")) return Alignment::bottom_right();
  const MaskArgument& given = arguments_[next_];
  const bool is_offset = given.word == "offset" && given.numbers.size() == 1;
  const bool is_lengths = given.word == "bottom_right" && given.has_numbers;
  take(is_offset || is_lengths,
       "an alignment: square, top_left, bottom_right, bottom_right(LENGTHS) or offset(NUMBER)");
  if (is_offset) return Alignment::offset(value_of(given.numbers[0]));
  std::vector<std::int64_t> lengths;
  lengths.reserve(given.numbers.size());
  for (const WrittenNumber& number : given.numbers) lengths.push_back(value_of(number));
  return Alignment::bottom_right(std::move(lengths));
}

void MaskArguments::end() const {
  if (next_ < arguments_.size()) refuse("')': this argument is one too many");
}

}}}  // namespace heed::v0::detail
