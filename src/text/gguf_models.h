// The models of GGUF files (tokenizer.ggml.model): each sets the model, the normaliser, the
// pre-tokenizer and the decoder of a pipeline. The keys begin with "tokenizer."; errors are
// FormatError.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "io/gguf_keys.h"
#include "text/formats.h"

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

// The type of each token.
std::vector<std::int64_t> read_gguf_types(io::GgufKeys& keys, std::size_t num_tokens);

[[noreturn]] void fail_in_gguf(io::GgufKeys& keys, const std::string& problem);

// Whether the tokens at the beginning and end of a text are added to it, unless the file sets it.
struct GgufEnds {
  bool adds_begin = false;
  bool adds_end = false;
  // the role of the end is that of the separator, which is always added
  bool ends_with_separator = false;
};

// A row of the table of models. `add` finds the tokens and their roles in `parts`.
struct GgufModel {
  std::string_view name;
  GgufEnds (*add)(io::GgufKeys& keys, PipelineParts& parts);
};

// "gpt2": BPE over bytes.
GgufEnds add_byte_level(io::GgufKeys& keys, PipelineParts& parts);
// "llama": SentencePiece's BPE over characters, with a token for each byte of the missing
// characters.
GgufEnds add_sentence_piece(io::GgufKeys& keys, PipelineParts& parts);
// "t5": SentencePiece's unigram model.
GgufEnds add_unigram(io::GgufKeys& keys, PipelineParts& parts);
// "bert": WordPiece, whose file marks the tokens that begin a word instead of those that continue
// it.
GgufEnds add_words(io::GgufKeys& keys, PipelineParts& parts);

inline constexpr std::array<GgufModel, 4> kGgufModels{{{"gpt2", add_byte_level},
                                                       {"llama", add_sentence_piece},
                                                       {"t5", add_unigram},
                                                       {"bert", add_words}}};

}}}  // namespace heed::v0::text
