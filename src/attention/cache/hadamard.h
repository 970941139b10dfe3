// The rotation that spreads what is large in a few dimensions over many, before it is quantised.
#pragma once

#include <cstdint>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace detail {

// row = H row, with H the orthonormal Walsh–Hadamard matrix of each block of the largest power of
// two that divides `dim`. H is its own inverse.
void rotate(float* row, std::int64_t dim);

}}}  // namespace heed::v0::detail
