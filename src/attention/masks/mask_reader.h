// The words of a text that names a mask, and the arguments between its parentheses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "heed/attention/mask.h"

namespace heed { inline namespace v0 { namespace detail {

// Reads words one after the other, and passes the spaces behind each. What throws, throws
// InvalidArgument that shows the text, with a caret below the place.
class MaskReader {
 public:
  explicit MaskReader(std::string_view text) : text_(text) { skip_spaces(); }

  // Where the next word begins; the end of the text where there is none.
  std::size_t place() const noexcept { return place_; }
  bool is_at_end() const noexcept { return place_ == text_.size(); }

  // Passes this character, if it is next.
  bool take(char character) noexcept;
  void expect(char character, std::string_view what);
  // Passes a letter and the letters, digits and underscores behind it; empty where none is next.
  std::string_view take_word() noexcept;
  // Passes digits. `what` is what messages say was expected.
  std::uint64_t number(std::string_view what);

  [[noreturn]] void refuse(std::size_t place, std::string_view problem) const;
  // "expected …, found …" at the next word.
  [[noreturn]] void refuse_next(std::string_view what) const;

 private:
  void skip_spaces() noexcept;

  std::string_view text_;
  std::size_t place_ = 0;
};

// A whole number as it is written.
struct WrittenNumber {
  std::size_t place = 0;
  bool is_negative = false;
  std::uint64_t magnitude = 0;
};

// An argument of a mask: a word, which numbers in parentheses may follow, or a number, or two with
// a colon between them.
struct MaskArgument {
  std::size_t place = 0;
  std::string_view word = {};  // empty for numbers
  bool has_numbers = false;    // behind the word
  bool is_range = false;
  std::vector<WrittenNumber> numbers = {};
};

// What stands between the parentheses behind a name, taken one after the other. What is expected
// has a name, for messages.
class MaskArguments {
 public:
  // Reads them; without "(" there are none.
  explicit MaskArguments(MaskReader& reader);

  std::int64_t number(std::string_view what);
  std::uint64_t seed();
  // A number or "unbounded".
  std::int64_t side(std::string_view what);
  // The numbers that follow.
  std::vector<std::int64_t> numbers();
  // The ranges BEGIN:END that follow.
  std::vector<RowRange> ranges();
  // Whether this word follows.
  bool takes(std::string_view word);
  // The alignment that follows, if anything does.
  Alignment alignment(Alignment otherwise = Alignment::square());
  // Throws where an argument is left.
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
  std::size_t end_ = 0;  // the place of ")", or behind the name
};

}}}  // namespace heed::v0::detail
