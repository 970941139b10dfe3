// The peak memory of this process.
#pragma once

#include <cstdint>

namespace heed::cli {

// Returns the peak resident bytes since the program began, including touched pages of mapped files.
std::int64_t peak_process_bytes();

}  // namespace heed::cli
