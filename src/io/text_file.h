// Files of text, read whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace io {

// A text that is read whole is no longer than this.
inline constexpr std::int64_t kMaxTextBytes = std::int64_t{1} << 30;

// Of a file or a pipe. Throws IoError when it is something else (/dev/zero has no end), has more
// than kMaxTextBytes or cannot be read.
HEED_API std::string read_text_file(const std::filesystem::path& path);

// Of standard input, until it ends. Throws IoError when it has more than kMaxTextBytes or cannot be
// read.
HEED_API std::string read_standard_input();

// Of a regular file, as it lies in a model's folder: never waits for a pipe. Throws FormatError
// when it has more than `max_bytes`, naming `kind`, what such files are ("an index"); IoError when
// it is no regular file or cannot be read.
HEED_API std::string read_whole_file(const std::filesystem::path& path, std::string_view kind,
                                     std::int64_t max_bytes = kMaxTextBytes);

// Tells one text from another: FNV-1a of 64 bits, in hexadecimal.
HEED_API std::string checksum(std::string_view text);

}}}  // namespace heed::v0::io
