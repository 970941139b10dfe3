// JSON text without values of the JSON library that hold others: destroying these allocates, and
// where memory has run out that ends the program. Its errors become heed's here.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace heed { inline namespace v0 { namespace io {

// Takes the events of a text one after another. A derived class overrides those that it waits for.
// An error becomes a FormatError that names `file`, which must outlive the reader, and the byte:
// the text is not JSON, or holds a number that a double cannot hold.
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

// Throws what the reader throws.
void read_json(std::string_view text, JsonReader& reader);

// What an exception of the library says, without its own name in front.
std::string problem_of(const nlohmann::json::exception& error);

enum class JsonCharacters { kAll, kAscii };  // in a string; others are escaped

// A string as JSON has it; UTF-8.
std::string json_string(std::string_view text, JsonCharacters characters = JsonCharacters::kAll);

}}}  // namespace heed::v0::io
