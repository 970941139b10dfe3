// The parts of a tokenizer in tokenizer.json. A part that heed does not know throws a FormatError
// naming it. Source: https://github.com/huggingface/tokenizers, whose format this is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/json_value.h"
#include "text/added_tokens.h"
#include "text/decoders.h"
#include "text/framing.h"
#include "text/normalizers.h"
#include "text/pipeline.h"
#include "text/pre_tokenizers.h"
#include "text/token_table.h"

namespace heed { inline namespace v0 { namespace text {

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

// Throws "… is 'X', which heed does not know".
[[noreturn]] void fail_unknown(const io::JsonPart& type);

}}}  // namespace heed::v0::text
