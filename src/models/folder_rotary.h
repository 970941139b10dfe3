// Rotary embeddings as config.json describes them.
#pragma once

#include "heed/models/config.h"
#include "models/config_fields.h"

namespace heed { inline namespace v0 { namespace models {

// As transformers 5 reads them: rope_parameters has everything; before it rope_theta and
// rope_scaling stood beside each other.
// @param config whose head_dim and max_positions have been read
RotaryPositions read_rotary(ConfigFields& fields, const ModelConfig& config);

}}}  // namespace heed::v0::models
