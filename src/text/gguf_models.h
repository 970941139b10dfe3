// The two kinds of tokenizers that GGUF files hold.
#pragma once

#include <cstdint>
#include <vector>

#include "io/gguf_keys.h"
#include "text/pipeline.h"

namespace heed { inline namespace v0 { namespace text {

// ggml's token types.
enum GgufTokenType : std::int64_t {
  kUndefinedToken,
  kNormalToken,
  kUnknownToken,
  kControlToken,
  kUserToken,
  kUnusedToken,  // converters add these when a model has more ids than tokens
  kByteToken,
};

// The type of each token. The keys below begin with "tokenizer."; errors are FormatError.
std::vector<std::int64_t> read_gguf_types(io::GgufKeys& keys, std::size_t num_tokens);

// "gpt2": BPE over bytes. Returns whether a text begins with a token by default, i.e. unless the
// file sets it.
bool add_byte_level(io::GgufKeys& keys, PipelineParts& parts);

// "llama": SentencePiece's BPE over characters, with a token for each byte of the missing
// characters. Returns the same.
bool add_sentence_piece(io::GgufKeys& keys, PipelineParts& parts);

}}}  // namespace heed::v0::text
