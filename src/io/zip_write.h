// The records of a zip archive, as bytes to write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io/zip_format.h"

namespace heed { inline namespace v0 { namespace io::zip {

// The header before a member's stored bytes. Like the directory, it takes the zip64 form only if a
// number does not fit in 32 bits.
std::vector<std::byte> format_local_header(const Entry& entry);

// The records after the members: the central directory at byte `offset` and the end records.
std::vector<std::byte> format_directory(std::span<const Entry> entries, std::int64_t offset);

}}}  // namespace heed::v0::io::zip
