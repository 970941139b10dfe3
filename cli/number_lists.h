// Converts arrays to JSON.
#pragma once

#include <nlohmann/json.hpp>

#include "heed/core/tensor.h"

namespace heed::cli {

// Returns nested lists, as deep as the array's rank.
nlohmann::json number_lists(FloatView view);

}  // namespace heed::cli
