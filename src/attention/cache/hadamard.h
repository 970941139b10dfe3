// The rotation that distributes large numbers in a few dimensions over many, before quantisation.
#pragma once

#include <cstdint>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace detail {

// row = H row, where H is the orthonormal Walsh–Hadamard matrix, applied in blocks of the largest
// power of two that divides `dim`. H is its own inverse.
void rotate(float* row, std::int64_t dim);

}}}  // namespace heed::v0::detail
