// How a causal model knows where a token stands.
#pragma once

#include <string>
#include <vector>

#include "heed/nn/attention_config.h"
#include "train/settings.h"

namespace heed::cli {

// What --positions takes: none; sinusoidal and learned, vectors added to the tokens'; rotary,
// alibi, t5, shaw and clip, part of each layer of attention.
const std::vector<std::string>& position_names();

// Throws UsageError when there are no such positions, or sizes do not fit them.
void check_positions(const ModelSettings& settings);

// The attention layers of a model with these settings. Positions end at `longest`.
nn::AttentionConfig attention_config(const ModelSettings& settings, std::int64_t longest);

}  // namespace heed::cli
