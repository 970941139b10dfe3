// The rotary embeddings of GGUF files.
#pragma once

#include "heed/io/gguf.h"
#include "heed/models/config.h"
#include "io/gguf_keys.h"

namespace heed { inline namespace v0 { namespace models {

// Reads the keys that begin with "rope.", as llama.cpp does: a factor without a type divides the
// frequencies. The tensors rope_factors_long.weight and rope_factors_short.weight of Phi-3 are
// LongRoPE's.
// @param keys of the architecture
// @param config its sizes
// @param is_partial true if the file may say how many dimensions of a head are turned; otherwise
// all are
RotaryPositions read_gguf_rotary(io::GgufKeys& keys, const ModelConfig& config, bool is_partial);

// That of Gemma 3's layers with a window, which is not scaled.
RotaryPositions read_gguf_window_rotary(io::GgufKeys& keys, const ModelConfig& config);

// Llama 3's scaling, precomputed by the file's author: the frequency of each pair is divided by an
// element of the tensor rope_freqs.weight. Source: ggml, ggml_rope_ext (freq_factors).
void read_gguf_divisors(const GgufFile& file, ModelConfig& config);

}}}  // namespace heed::v0::models
