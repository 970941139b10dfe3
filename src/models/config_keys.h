// Members of configurations that no result of heed depends on.
#pragma once

#include <span>
#include <string_view>

#include "heed/models/config.h"

namespace heed { inline namespace v0 { namespace models {

// Of config.json of any family, and of one.
std::span<const std::string_view> keys_without_effect();
std::span<const std::string_view> keys_without_effect(Family family);

// Of generation_config.json, and of config.json of earlier versions of transformers: how tokens are
// chosen. Callers of generate() say that themselves.
std::span<const std::string_view> keys_of_generation();

}}}  // namespace heed::v0::models
