#include "io/json.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "heed/error.h"
#include "io/printable.h"

namespace heed::inline v0::io {

namespace {

using Json = nlohmann::json;

// Takes everything, and remembers where it became wrong: the library's own exceptions know the byte
// of some errors only.
struct Checker {
  struct Error {
    std::size_t byte;
    std::string problem;
  };
  std::optional<Error> error;

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(Json::number_integer_t) { return true; }
  bool number_unsigned(Json::number_unsigned_t) { return true; }
  bool number_float(Json::number_float_t, const Json::string_t&) { return true; }
  bool string(Json::string_t&) { return true; }
  bool binary(Json::binary_t&) { return true; }
  bool start_object(std::size_t) { return true; }
  bool key(Json::string_t&) { return true; }
  bool end_object() { return true; }
  bool start_array(std::size_t) { return true; }
  bool end_array() { return true; }
  bool parse_error(std::size_t byte, const std::string&, const Json::exception& exception) {
    error = {byte, problem_of(exception)};
    return false;
  }
};

}  // namespace

Json parse_json(std::string_view text, const std::string& file) {
  Checker checker;
  if (!Json::sax_parse(text, &checker)) {
    throw FormatError(file, static_cast<std::int64_t>(checker.error->byte),
                      "not valid JSON: " + checker.error->problem);
  }
  return Json::parse(text);
}

// "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error …" or
// "[json.exception.out_of_range.406] number overflow …"
std::string problem_of(const Json::exception& error) {
  std::string_view text = error.what();
  text.remove_prefix(std::min(text.find("] ") + 2, text.size()));
  const std::size_t place = text.find(": ");
  if (text.starts_with("parse error at") && place != text.npos) text.remove_prefix(place + 2);
  return printable(text);
}

}  // namespace heed::inline v0::io
