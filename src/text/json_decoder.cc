#include <string>
#include <utility>
#include <vector>

#include "text/code_points.h"
#include "text/json_parts.h"

namespace heed::inline v0::text {
namespace {

using io::JsonPart;

Decoder read_sequence_of_decoders(const JsonPart& part) {
  std::vector<Decoder> steps;
  for (const JsonPart& step : part.at("decoders").items()) steps.push_back(read_decoder(step));
  return [steps = std::move(steps)](TokenTexts tokens) {
    for (const Decoder& step : steps) tokens = step(std::move(tokens));
    return tokens;
  };
}

std::int64_t read_count(const JsonPart& part) {
  if (part.integer() < 0) part.fail(" is negative");
  return part.integer();
}

Decoder read_strip(const JsonPart& part) {
  const JsonPart content = part.at("content");
  if (count_characters(content.string()) != 1) content.fail(" is not one character");
  return [strip = StripDecoder{content.string(), read_count(part.at("start")),
                               read_count(part.at("stop"))}](TokenTexts tokens) {
    return decode_stripped(std::move(tokens), strip);
  };
}

}  // namespace

Decoder read_decoder(const JsonPart& part) {
  const JsonPart type = part.at("type");
  const std::string& name = type.string();
  if (name == "ByteLevel") return decode_byte_level;
  if (name == "ByteFallback") return decode_byte_fallback;
  if (name == "Fuse") return decode_fused;
  if (name == "Strip") return read_strip(part);
  if (name == "Sequence") return read_sequence_of_decoders(part);
  if (name == "WordPiece") {
    return [prefix = part.string_or("prefix", "##"), cleans = part.boolean_or("cleanup", true)](
               TokenTexts tokens) { return decode_word_piece(std::move(tokens), prefix, cleans); };
  }
  if (name == "Replace") {
    return [pattern = read_literal(part.at("pattern")), content = part.at("content").string()](
               TokenTexts tokens) { return decode_replaced(std::move(tokens), pattern, content); };
  }
  fail_unknown(type);
}

}  // namespace heed::inline v0::text
