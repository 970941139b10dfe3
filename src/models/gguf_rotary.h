// Rotary embeddings as GGUF files describe them.
#pragma once

#include "heed/models/config.h"
#include "io/gguf_keys.h"

namespace heed { inline namespace v0 { namespace models {

// Of the keys that begin with "rope.", as llama.cpp reads them: every dimension of a head is
// turned, and a factor without a type divides frequencies.
// @param keys of the architecture
// @param config its sizes
RotaryPositions read_gguf_rotary(io::GgufKeys& keys, const ModelConfig& config);

// Llama 3's scaling, computed by whoever made the file: the frequency of each pair is divided by
// a number of the tensor rope_freqs.weight. Source: ggml, ggml_rope_ext (freq_factors).
void read_divisors(const GgufFile& file, ModelConfig& config);

}}}  // namespace heed::v0::models
