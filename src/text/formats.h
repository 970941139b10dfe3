// The formats of files from which tokenizers are made.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "heed/io/gguf.h"
#include "heed/text/tokenizer.h"
#include "text/pipeline.h"

namespace heed { inline namespace v0 { namespace text {

// What tokenizer_config.json says beside a tokenizer.
struct TokenizerConfig {
  // Tokens by their roles, as files write them.
  std::optional<std::string> begin;      // bos_token, or else cls_token
  std::optional<std::string> end;        // eos_token, or else sep_token
  std::optional<std::string> separator;  // sep_token
  std::optional<std::string> padding;
  std::optional<std::string> unknown;
  std::optional<std::string> mask;
  std::optional<std::string> chat_template;  // in Jinja
  std::string tokenizer_class;               // empty: not said
  BertNormalization bert;                    // how vocab.txt is read
};

// These name `file` in a FormatError.
TokenizerConfig parse_tokenizer_config(std::string_view text, const std::string& file);
std::unique_ptr<const Tokenizer> tokenizer_from_json(std::string_view text, const std::string& file,
                                                     const TokenizerConfig& config);
// A token in each line, whose number, from 0, is its id.
std::unique_ptr<const Tokenizer> tokenizer_from_vocabulary(std::string_view text,
                                                           const std::string& file,
                                                           const TokenizerConfig& config);
std::unique_ptr<const Tokenizer> tokenizer_from_gguf(const GgufFile& file);

// Finds the tokens of `parts` that have roles: those that the configuration names, or else those
// that stand around texts or have well-known names. Sets the template.
void apply_config(PipelineParts& parts, const TokenizerConfig& config);

// The tokens with roles as templates of conversations know them.
ChatTokens chat_tokens(const PipelineParts& parts);

}}}  // namespace heed::v0::text
