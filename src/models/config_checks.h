// What a configuration has to be, wherever it was read.
#pragma once

#include <string>

#include "heed/models/config.h"

namespace heed { inline namespace v0 { namespace models {

// Throws FormatError naming `file` when a size is not positive or out of range, heads do not
// divide, or a kind needs what is not there.
void check_config(const ModelConfig& config, const std::string& file);

}}}  // namespace heed::v0::models
