// The texts that models learn from.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace heed::cli {

// A short story, written for heed: cli/train/texts/lighthouse.txt.
std::string_view shipped_text();

// Throws IoError when it cannot be read.
std::string read_text_file(const std::filesystem::path& path);

// Tells one text from another: FNV-1a of 64 bits, in hexadecimal.
std::string checksum(std::string_view text);

}  // namespace heed::cli
