#include <utility>

#include "io/json_value.h"
#include "text/formats.h"
#include "text/json_parts.h"

namespace heed { inline namespace v0 { namespace text {

std::unique_ptr<const Tokenizer> tokenizer_from_json(std::string_view text, const std::string& file,
                                                     const TokenizerConfig& config) {
  const io::JsonValue root = io::parse_json(text, file);
  const io::JsonPart part(file, root);
  PipelineParts parts;
  if (const auto added = part.find("added_tokens")) parts.added = read_added_tokens(*added);
  read_model(part.at("model"), parts);
  if (const auto normalizer = part.find("normalizer")) {
    parts.normalizer = read_normalizer(*normalizer);
  }
  if (const auto splits = part.find("pre_tokenizer")) {
    parts.pre_tokenizer = read_pre_tokenizer(*splits);
  }
  if (const auto framing = part.find("post_processor")) {
    parts.framing = read_framing(*framing, *parts.tokens);
  }
  if (const auto decoder = part.find("decoder")) parts.decoder = read_decoder(*decoder);
  apply_config(parts, config);
  return make_pipeline(std::move(parts));
}

}}}  // namespace heed::v0::text
