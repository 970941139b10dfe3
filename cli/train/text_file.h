// The texts that models learn from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace heed::cli {

// A short story, written for heed: cli/train/texts/lighthouse.txt.
std::string_view shipped_text();

// A text that is read whole is no longer than this.
inline constexpr std::int64_t kMaxTextBytes = std::int64_t{1} << 30;

// Of a file or a pipe. Throws IoError when it is something else (/dev/zero has no end), has more
// than kMaxTextBytes or cannot be read.
std::string read_text_file(const std::filesystem::path& path);

// Tells one text from another: FNV-1a of 64 bits, in hexadecimal.
std::string checksum(std::string_view text);

}  // namespace heed::cli
