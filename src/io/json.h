// JSON text: read and written without nested values of the JSON library, as destroying those
// allocates, which ends the program when memory has run out; and values of the library from
// outside. Errors of the library become errors of heed here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace io {

// Receives the events of a JSON text in sequence. A derived class overrides those that it expects.
// Throws FormatError, naming `file`, which must outlive the reader, and the byte, if the text is
// not JSON or holds a number that a double cannot hold.
class JsonReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonReader(const std::string& file) : file_(file) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t byte, const std::string& token,
                   const nlohmann::json::exception& error) override;

 private:
  const std::string& file_;
};

// Parses `text`, passing its events to `reader`. Throws what the reader throws.
void read_json(std::string_view text, JsonReader& reader);

// The message of an exception of the library, without the exception's own name in front.
std::string problem_of(const nlohmann::json::exception& error);

enum class JsonCharacters { kAll, kAscii };  // the characters of a string that are not escaped

// The JSON form of a string, in UTF-8.
std::string json_string(std::string_view text, JsonCharacters characters = JsonCharacters::kAll);

// Copying and printing recurse; this many levels do not overflow the stack.
inline constexpr int kMaxJsonDepth = 32;

// Returns the value. is_discarded() is true for it if the text is not JSON, holds a number that a
// double cannot hold, or nests deeper than kMaxJsonDepth.
HEED_API nlohmann::json parse_json(std::string_view text);

class CountedCharacters {
 public:
  // NOLINTBEGIN(readability-identifier-naming): std::iterator_traits wants these names
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;
  // NOLINTEND(readability-identifier-naming)

  CountedCharacters(const char* at, std::int64_t& taken) : at_(at), taken_(&taken) {}
  const char& operator*() const { return *at_; }
  CountedCharacters& operator++() {
    ++at_;
    ++*taken_;
    return *this;
  }
  bool operator==(const CountedCharacters& other) const { return at_ == other.at_; }
  bool operator!=(const CountedCharacters& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  std::int64_t* taken_;
};

}}}  // namespace heed::v0::io
