// The checks of a configuration from any kind of file.
#pragma once

#include <string>

#include "heed/models/config.h"

namespace heed { inline namespace v0 { namespace models {

// Throws FormatError, naming `file`, if a size is not positive or out of range, heads do not
// divide, or a setting of the family is missing.
void check_config(const ModelConfig& config, const std::string& file);

}}}  // namespace heed::v0::models
