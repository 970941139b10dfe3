// Members of configurations on which no result of heed depends.
#pragma once

#include <span>
#include <string_view>

#include "heed/models/config.h"

namespace heed { inline namespace v0 { namespace models {

// Members of config.json, for any family and for one.
std::span<const std::string_view> keys_without_effect();
std::span<const std::string_view> keys_without_effect(Family family);

// Members of generation_config.json, and of config.json of earlier versions of transformers, that
// control sampling. Callers of generate() set that themselves.
std::span<const std::string_view> keys_of_generation();

}}}  // namespace heed::v0::models
