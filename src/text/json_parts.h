// The parts of a tokenizer as tokenizer.json describes them. What heed does not know is a
// FormatError that names the part.
// Source: https://github.com/huggingface/tokenizers, whose files these are.
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

// Ids are those of `tokens`.
Framing read_framing(const io::JsonPart& part, const TokenTable& tokens);

std::vector<AddedToken> read_added_tokens(const io::JsonPart& part);

// Sets the tokens, of which `parts.added` are some, the model, the prefix of labels and the unknown
// token.
void read_model(const io::JsonPart& part, PipelineParts& parts);

// A token's id, which must be one. `part` is where a file names it.
std::int64_t checked_id(const io::JsonPart& part, const TokenTable& tokens, std::int64_t id);

// The string, not empty, of {"String": …}; a {"Regex": …} is not known.
std::string read_literal(const io::JsonPart& pattern);

// "… is 'X', which heed does not know"
[[noreturn]] void fail_unknown(const io::JsonPart& type);

}}}  // namespace heed::v0::text
