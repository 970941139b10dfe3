// A tokenizer built from parts, the file formats that describe it, and the readers of the parts in
// tokenizer.json. A part that heed does not know throws a FormatError naming it. Source:
// https://github.com/huggingface/tokenizers, whose format this is.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "heed/io/gguf.h"
#include "heed/text/tokenizer.h"
#include "io/json_value.h"
#include "text/chat_template.h"
#include "text/decoders.h"
#include "text/framing.h"
#include "text/normalizers.h"
#include "text/pattern.h"
#include "text/pre_tokenizers.h"
#include "text/token_models.h"

namespace heed { inline namespace v0 { namespace text {

// An empty function does nothing.
struct PipelineParts {
  std::unique_ptr<const TokenTable> tokens;
  std::unique_ptr<const Model> model;
  std::vector<AddedToken> added;
  std::vector<std::int64_t> silent;  // tokens that decode to nothing
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Framing framing;
  Decoder decoder = spacing_decoder();
  std::string continuing_prefix;  // "##" of WordPiece, which labels leave out
  SpecialTokens special;
  ChatTemplate chat;
};

std::unique_ptr<const Tokenizer> make_pipeline(PipelineParts parts);

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

Normalizer read_normalizer(const io::JsonPart& part);
PreTokenizer read_pre_tokenizer(const io::JsonPart& part);
Decoder read_decoder(const io::JsonPart& part);

// The ids are those of `tokens`.
Framing read_framing(const io::JsonPart& part, const TokenTable& tokens);

std::vector<AddedToken> read_added_tokens(const io::JsonPart& part);

// Sets the tokens, which include `parts.added`, the model, the prefix of labels and the unknown
// token.
void read_model(const io::JsonPart& part, PipelineParts& parts);

// Returns `id`; throws unless it is the id of a token. `part` is the place in the file.
std::int64_t checked_id(const io::JsonPart& part, const TokenTable& tokens, std::int64_t id);

// Returns the non-empty string of {"String": …}; throws for {"Regex": …}.
std::string read_literal(const io::JsonPart& pattern);

std::shared_ptr<const Pattern> read_regex(const io::JsonPart& part);

// Throws unless the string is one character.
void check_character(const io::JsonPart& part);

// The settings of "Metaspace", which a pre-tokenizer and a decoder share.
SpaceMarking read_space_marking(const io::JsonPart& part);

// Throws "… is 'X', which heed does not know".
[[noreturn]] void fail_unknown(const io::JsonPart& type);

}}}  // namespace heed::v0::text
