// Decoders of tokenizer.json.
#include <string>
#include <vector>

#include "text/decoders.h"
#include "text/formats.h"

namespace heed { inline namespace v0 { namespace text {

using io::JsonPart;

namespace {

Decoder read_sequence_of_decoders(const JsonPart& part) {
  std::vector<Decoder> steps;
  for (const JsonPart& step : part.at("decoders").items()) steps.push_back(read_decoder(step));
  return decoders_of(steps);
}

std::int64_t read_count(const JsonPart& part) {
  if (part.integer() < 0) part.fail(" is negative");
  return part.integer();
}

Decoder read_strip(const JsonPart& part) {
  const JsonPart content = part.at("content");
  check_character(content);
  return stripping_decoder(
      {content.string(), read_count(part.at("start")), read_count(part.at("stop"))});
}

}  // namespace

Decoder read_decoder(const JsonPart& part) {
  const JsonPart type = part.at("type");
  const std::string& name = type.string();
  if (name == "ByteLevel") return byte_level_decoder();
  if (name == "ByteFallback") return byte_fallback_decoder();
  if (name == "Fuse") return fusing_decoder();
  if (name == "Strip") return read_strip(part);
  if (name == "Sequence") return read_sequence_of_decoders(part);
  if (name == "WordPiece") {
    return word_piece_decoder(part.string_or("prefix", "##"), part.boolean_or("cleanup", true));
  }
  if (name == "Replace") {
    return replacing_decoder(read_literal(part.at("pattern")), part.at("content").string());
  }
  if (name == "Metaspace") {
    const SpaceMarking marking = read_space_marking(part);
    return marks_decoder(marking.mark, marking.prefix != SpaceMarking::Prefix::kNever);
  }
  if (name == "BPEDecoder") {
    const std::string suffix = part.string_or("suffix", "</w>");
    if (suffix.empty()) part.at("suffix").fail(" is empty");
    return suffix_decoder(suffix);
  }
  fail_unknown(type);
}

}}}  // namespace heed::v0::text
