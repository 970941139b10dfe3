// Measures how fast a plain loop reads memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace heed::cli {

// Reads every byte of `parts`, in order and 4 KiB at a time, on num_threads() threads.
void read_all(const std::vector<std::span<const std::byte>>& parts);

}  // namespace heed::cli
