// A reader for the text of masks: words, and the arguments in parentheses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "heed/attention/mask.h"

namespace heed { inline namespace v0 { namespace detail {

// Reads a text word by word, skipping spaces. Errors are InvalidArgument with the text and a caret
// below the place.
class MaskReader {
 public:
  explicit MaskReader(std::string_view text) : text_(text) { skip_spaces(); }

  // The place of the next word, or the end of the text.
  std::size_t place() const noexcept { return place_; }
  bool is_at_end() const noexcept { return place_ == text_.size(); }

  // Reads this character if it comes next, and returns true if it did.
  bool take(char character) noexcept;
  void expect(char character, std::string_view what);
  // Reads a word of letters, digits and underscores that begins with a letter; empty if none comes
  // next.
  std::string_view take_word() noexcept;
  // Reads digits. Errors say that `what` was expected.
  std::uint64_t number(std::string_view what);

  [[noreturn]] void refuse(std::size_t place, std::string_view problem) const;
  // Throws "expected …, found …" for the next word.
  [[noreturn]] void refuse_next(std::string_view what) const;

 private:
  void skip_spaces() noexcept;

  std::string_view text_;
  std::size_t place_ = 0;
};

// A whole number as it is written: its sign and magnitude.
struct WrittenNumber {
  std::size_t place = 0;
  bool is_negative = false;
  std::uint64_t magnitude = 0;
};

// An argument of a mask: a word, possibly with numbers in parentheses, or a number, or two numbers
// with a colon between them.
struct MaskArgument {
  std::size_t place = 0;
  std::string_view word = {};  // empty for numbers
  bool has_numbers = false;    // true if numbers follow the word
  bool is_range = false;
  std::vector<WrittenNumber> numbers = {};
};

// The arguments in the parentheses after a name, read one by one. `what` names an argument in
// messages.
class MaskArguments {
 public:
  // Reads all arguments; there are none if no "(" comes next.
  explicit MaskArguments(MaskReader& reader);

  std::int64_t number(std::string_view what);
  std::uint64_t seed();
  // Reads a number or "unbounded".
  std::int64_t side(std::string_view what);
  // Reads all numbers that follow.
  std::vector<std::int64_t> numbers();
  // Reads all ranges BEGIN:END that follow.
  std::vector<RowRange> ranges();
  // Reads this word if it comes next, and returns true if it did.
  bool takes(std::string_view word);
  // Reads an alignment if one comes next, or returns `otherwise`.
  Alignment alignment(Alignment otherwise = Alignment::square());
  // Throws if an argument is left.
  void end() const;

 private:
  bool is_next_number() const;
  bool is_next_word(std::string_view word) const;
  const MaskArgument& take(bool is_right, std::string_view what);
  [[noreturn]] void refuse(std::string_view what) const;
  std::int64_t value_of(const WrittenNumber& number) const;

  const MaskReader& reader_;
  std::vector<MaskArgument> arguments_;
  std::size_t next_ = 0;
  std::size_t end_ = 0;  // the place of ")", or the end of the name
};

}}}  // namespace heed::v0::detail
