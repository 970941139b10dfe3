#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/npy_stream.h"

namespace heed { inline namespace v0 { namespace io {

namespace {

// The reason why dtypes of this kind are not read. For other kinds heed merely has no use; there
// the text lists the dtypes that it reads.
std::string_view reason_to_refuse(char kind) {
  switch (kind) {
    case 'O':
      return "object arrays are pickled Python; refused";
    case 'V':
      return "structured and raw dtypes are not supported";
    case 'S':
    case 'U':
    case 'a':
      return "arrays of text are not supported";
    case 'c':
      return "complex numbers are not supported";
    default:
      return "expected a byte order and b1, i1 to i8, u1 to u8, f2, f4 or f8";
  }
}

// A recursive-descent parser of the Python literals in a header.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& file, std::int64_t offset)
      : text_(text), file_(file), offset_(offset) {}

  NpyHeader parse() {
    expect('{');
    while (!take('}')) {
      parse_item();
      if (take(',')) continue;
      expect('}');
      break;
    }
    skip_spaces();
    if (at_ != text_.size()) fail(at_, "the header goes on after its dictionary");
    require(has_descr_, "descr");
    require(has_order_, "fortran_order");
    require(has_shape_, "shape");
    return header_;
  }

 private:
  void parse_item() {
    skip_spaces();
    const std::size_t key_at = at_;
    const std::string_view key = parse_string();
    expect(':');
    if (key == "descr") {
      note(has_descr_, key, key_at);
      parse_descr();
    } else if (key == "fortran_order") {
      note(has_order_, key, key_at);
      header_.is_fortran_order = parse_bool();
    } else if (key == "shape") {
      note(has_shape_, key, key_at);
      parse_shape();
    } else {
      fail(key_at, fmt::format("unknown key '{}' in the header", printable(key)));
    }
  }

  void note(bool& seen, std::string_view key, std::size_t key_at) const {
    if (seen) fail(key_at, fmt::format("the key '{}' occurs twice in the header", key));
    seen = true;
  }

  void require(bool seen, std::string_view key) const {
    if (!seen) fail(0, fmt::format("the header has no key '{}'", key));
  }

  void parse_descr() {
    skip_spaces();
    const std::size_t begin = at_;
    if (take('[') || take('(')) fail(begin, "structured dtypes are not supported");
    const std::string_view descr = parse_string();
    if (descr == "O") refuse_descr(begin, descr, 'O');
    if (descr.size() < 2) refuse_descr(begin, descr, '\0');
    const char order = descr[0];
    const std::string_view code = descr.substr(1);
    const auto* type = std::find_if(kElementTypes.begin(), kElementTypes.end(),
                                    [&](const ElementType& t) { return t.npy_code == code; });
    const bool is_order = std::string_view("<>|=").find(order) != std::string_view::npos;
    if (!is_order || type == kElementTypes.end()) refuse_descr(begin, descr, code[0]);
    if (order == '|' && type->size > 1) {
      fail(begin, fmt::format("dtype '{}' has {} bytes but no byte order", descr, type->size));
    }
    header_.type = type;
    header_.is_byte_swapped = order == (kHostIsLittleEndian ? '>' : '<') && type->size > 1;
  }

  [[noreturn]] void refuse_descr(std::size_t at, std::string_view descr, char kind) const {
    fail(at, fmt::format("dtype '{}': {}", printable(descr), reason_to_refuse(kind)));
  }

  void parse_shape() {
    skip_spaces();
    const std::size_t begin = at_;
    expect('(');
    std::vector<std::int64_t> extents;
    bool is_tuple = true;  // "(3)" is a number in brackets, "(3,)" is a tuple
    while (!take(')')) {
      extents.push_back(parse_integer());
      is_tuple = take(',');
      if (is_tuple) continue;
      expect(')');
      break;
    }
    if (!is_tuple && extents.size() == 1) fail(begin, "the shape is a number, not a tuple");
    try {
      header_.shape = Shape(extents);
    } catch (const InvalidArgument& error) {
      fail(begin, error.what());
    }
  }

  std::string_view parse_string() {
    skip_spaces();
    const std::size_t begin = at_;
    const char quote = begin < text_.size() ? text_[begin] : '\0';
    if (quote != '\'' && quote != '"') fail(begin, "expected a string in the header");
    const std::size_t end = text_.find(quote, begin + 1);
    if (end == std::string_view::npos) fail(begin, "a string in the header does not end");
    const std::string_view content = text_.substr(begin + 1, end - begin - 1);
    if (content.find('\\') != std::string_view::npos) {
      fail(begin, "a string in the header has an escape sequence");
    }
    at_ = end + 1;
    return content;
  }

  bool parse_bool() {
    skip_spaces();
    for (const std::string_view word : {"True", "False"}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return word == "True";
    }
    fail(at_, "expected True or False in the header");
  }

  // Python 2 wrote a long 3 as 3L.
  std::int64_t parse_integer() {
    skip_spaces();
    const char* const begin = text_.data() + at_;
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error == std::errc::invalid_argument) fail(at_, "expected a number in the shape");
    if (error != std::errc()) fail(at_, "a number in the shape does not fit in 63 bits");
    if (end - begin > 1 && *begin == '0') fail(at_, "a number in the shape has a leading zero");
    at_ = static_cast<std::size_t>(end - text_.data());
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;
    return value;
  }

  void skip_spaces() {
    while (at_ < text_.size() && std::string_view(" \n\t\r").find(text_[at_]) != text_.npos) ++at_;
  }

  bool take(char c) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  void expect(char c) {
    if (!take(c)) fail(at_, fmt::format("expected '{}' in the header", c));
  }

  [[noreturn]] void fail(std::size_t at, const std::string& problem) const {
    throw FormatError(file_, offset_ + static_cast<std::int64_t>(at), problem);
  }

  std::string_view text_;
  const std::string& file_;
  std::int64_t offset_;
  std::size_t at_ = 0;
  NpyHeader header_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, const std::string& file, std::int64_t offset) {
  return HeaderParser(text, file, offset).parse();
}

std::string format_npy_header(const ElementType& type, const Shape& shape) {
  constexpr std::size_t kAlignment = 64;
  constexpr std::size_t kPrefix = 10;  // magic, version, length
  const char order = type.size == 1 ? '|' : kHostIsLittleEndian ? '<' : '>';
  std::string text =
      fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}", order,
                  type.npy_code, fmt::join(shape, ", "), shape.rank() == 1 ? "," : "");
  const std::size_t unpadded = kPrefix + text.size() + 1;
  text.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  text += '\n';
  std::string header(kNpyMagic);
  header +=
      {'\1', '\0', static_cast<char>(text.size() & 0xffU), static_cast<char>(text.size() >> 8U)};
  return header + text;
}

}}}  // namespace heed::v0::io
