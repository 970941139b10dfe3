// Reads the numbers and texts of a GGUF file in sequence.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/little_endian.h"
#include "io/unicode.h"

namespace heed { inline namespace v0 { namespace io {

// Every member throws FormatError if the file ends too early. `what` names the item in the error.
class GgufReader {
 public:
  GgufReader(std::span<const std::byte> bytes, const std::string& file)
      : fields_(bytes), size_(static_cast<std::int64_t>(bytes.size())), file_(file) {}

  std::int64_t position() const { return size_ - remaining(); }
  std::int64_t remaining() const { return static_cast<std::int64_t>(fields_.remaining()); }

  [[noreturn]] void fail(std::int64_t byte, const std::string& problem) const {
    throw FormatError(file_, byte, problem);
  }

  template <std::unsigned_integral T>
  T unsigned_number(std::string_view what) {
    require(sizeof(T), what);
    return fields_.next<T>();
  }

  float float_number(std::string_view what) {
    return std::bit_cast<float>(unsigned_number<std::uint32_t>(what));
  }
  double double_number(std::string_view what) {
    return std::bit_cast<double>(unsigned_number<std::uint64_t>(what));
  }

  bool boolean(std::string_view what) {
    const auto byte = unsigned_number<std::uint8_t>(what);
    if (byte > 1) fail(position() - 1, fmt::format("{} is {}, a bool is 0 or 1", what, byte));
    return byte == 1;
  }

  // A 64-bit number that is used as a size or an offset. Its name in errors comes in two parts, so
  // that no string is built when nothing is wrong.
  std::int64_t size(std::string_view number_of, std::string_view what) {
    const auto number = unsigned_number<std::uint64_t>(what);
    if (number > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
      fail(position() - 8, fmt::format("{}{} is {}, beyond 63 bits", number_of, what, number));
    }
    return static_cast<std::int64_t>(number);
  }

  // The number of items that follow, each of at least `smallest` bytes: no more is allocated than
  // the file can hold.
  std::int64_t count(std::string_view number_of, std::string_view what, std::int64_t smallest) {
    const std::int64_t number = size(number_of, what);
    if (number > remaining() / smallest) {
      fail(position() - 8, fmt::format("{}{} is {}, more than the {} bytes that follow can hold",
                                       number_of, what, number, remaining()));
    }
    return number;
  }

  // A text in UTF-8, preceded by its length in 64 bits.
  std::string text(std::string_view what) {
    const std::int64_t length = count("the length of ", what, 1);
    const std::int64_t begin = position();
    const auto bytes = fields_.next_bytes(static_cast<std::size_t>(length));
    const std::string_view characters(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (const auto invalid = unicode::find_invalid(characters)) {
      fail(begin + static_cast<std::int64_t>(*invalid),
           fmt::format("{} '{}' is not UTF-8", what, printable(characters)));
    }
    return std::string(characters);
  }

 private:
  void require(std::size_t bytes, std::string_view what) const {
    if (fields_.remaining() >= bytes) return;
    fail(size_, fmt::format("truncated in {}", what));
  }

  FieldReader fields_;
  std::int64_t size_;
  const std::string& file_;
};

}}}  // namespace heed::v0::io
