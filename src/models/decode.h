// Converts stored weights to floats, in plain loops.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heed/models/checkpoint.h"

namespace heed { inline namespace v0 { namespace models {

// out[i] = stored element i. `bytes` need no alignment; `count` is a multiple of the type's block.
void decode(WeightType type, const std::byte* bytes, std::int64_t count, float* out);

}}}  // namespace heed::v0::models
