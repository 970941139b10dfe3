// The file formats of tokenizers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "heed/io/gguf.h"
#include "heed/text/tokenizer.h"
#include "text/pipeline.h"

namespace heed { inline namespace v0 { namespace text {

// The settings in tokenizer_config.json, which comes with a tokenizer.
struct TokenizerConfig {
  // Tokens by role, as files write them.
  std::optional<std::string> begin;      // bos_token, otherwise cls_token
  std::optional<std::string> end;        // eos_token, otherwise sep_token
  std::optional<std::string> separator;  // sep_token
  std::optional<std::string> padding;
  std::optional<std::string> unknown;
  std::optional<std::string> mask;
  std::optional<std::string> chat_template;  // in Jinja
  std::string tokenizer_class;               // empty if absent
  BertNormalization bert;                    // the normalisation for vocab.txt
};

// Throws FormatError, naming `file`.
TokenizerConfig parse_tokenizer_config(std::string_view text, const std::string& file);
std::unique_ptr<const Tokenizer> tokenizer_from_json(std::string_view text, const std::string& file,
                                                     const TokenizerConfig& config);
// Reads one token per line; its id is the number of the line, from 0.
std::unique_ptr<const Tokenizer> tokenizer_from_vocabulary(std::string_view text,
                                                           const std::string& file,
                                                           const TokenizerConfig& config);
std::unique_ptr<const Tokenizer> tokenizer_from_gguf(const GgufFile& file);

// Sets the tokens of `parts` that have roles: those that the configuration names, otherwise those
// that frame texts or have well-known names. Sets the template, too.
void apply_config(PipelineParts& parts, const TokenizerConfig& config);

// The tokens with roles that chat templates refer to.
ChatTokens chat_tokens(const PipelineParts& parts);

}}}  // namespace heed::v0::text
