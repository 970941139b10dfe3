// The choices of tokenizer.ggml.pre in GGUF files: how texts are split before BPE over bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/pre_tokenizers.h"

namespace heed { inline namespace v0 { namespace text {

// A row of the table. Texts are cut at the matches of each pattern in turn.
struct GgufSplit {
  std::string_view name;
  std::vector<std::string_view> patterns;
  bool ignores_merges = false;
  bool adds_begin = false;  // default if the file has no such key
};

// The row of a name; nullptr if there is none.
const GgufSplit* find_gguf_split(std::string_view name);

// All names: "default, gpt-2, …".
std::string gguf_split_names();

PreTokenizer pre_tokenizer_of(const GgufSplit& split);

}}}  // namespace heed::v0::text
