// Reads rotary embeddings from config.json.
#pragma once

#include "heed/models/config.h"
#include "models/config_fields.h"

namespace heed { inline namespace v0 { namespace models {

// Reads them as transformers 5 does: rope_parameters holds all settings; earlier files have
// rope_theta and rope_scaling instead.
// @param config must hold head_dim and max_positions
RotaryPositions read_rotary(ConfigFields& fields, const ModelConfig& config);

}}}  // namespace heed::v0::models
