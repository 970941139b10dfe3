// How fast memory can be read: a plain loop over it.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace heed::cli {

// Reads every byte of these, 4 KiB at a time in order, divided among num_threads() threads.
void read_all(const std::vector<std::span<const std::byte>>& parts);

}  // namespace heed::cli
