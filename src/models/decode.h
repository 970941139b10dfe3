// Stored weights as floats, in plain loops.
#pragma once

#include <cstddef>
#include <cstdint>

#include "heed/models/checkpoint.h"

namespace heed { inline namespace v0 { namespace models {

// out[i] = the element that is stored at place i. `bytes` have any alignment; `count` is a multiple
// of the type's block.
void decode(WeightType type, const std::byte* bytes, std::int64_t count, float* out);

}}}  // namespace heed::v0::models
