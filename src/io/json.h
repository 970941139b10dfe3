// Reads and writes JSON text without nested values of the JSON library: destroying those allocates,
// which ends the program when memory has run out. Errors of the library become errors of heed here.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

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

}}}  // namespace heed::v0::io
