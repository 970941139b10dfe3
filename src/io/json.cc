#include "io/json.h"

#include <algorithm>
#include <cstdint>

#include "core/printable.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace io {

bool JsonReader::parse_error(std::size_t byte, const std::string&,
                             const nlohmann::json::exception& error) {
  throw FormatError(file_, static_cast<std::int64_t>(byte), "not valid JSON: " + problem_of(error));
}

void read_json(std::string_view text, JsonReader& reader) {
  nlohmann::json::sax_parse(text, &reader);
}

// Returns the message without its prefix, e.g. of "[json.exception.parse_error.101] parse error at
// line 1, column 2: syntax error …" or "[json.exception.out_of_range.406] number overflow …".
std::string problem_of(const nlohmann::json::exception& error) {
  std::string_view text = error.what();
  text.remove_prefix(std::min(text.find("] ") + 2, text.size()));
  const std::size_t place = text.find(": ");
  if (text.starts_with("parse error at") && place != text.npos) text.remove_prefix(place + 2);
  return printable(text);
}

std::string json_string(std::string_view text, JsonCharacters characters) {
  constexpr int kOneLine = -1;
  return nlohmann::json(text).dump(kOneLine, ' ', characters == JsonCharacters::kAscii);
}

}}}  // namespace heed::v0::io
