// How much memory this process has had at once.
#pragma once

#include <cstdint>

namespace heed::cli {

// Bytes in memory at most since the program began, those of mapped files that were touched among
// them.
std::int64_t peak_process_bytes();

}  // namespace heed::cli
