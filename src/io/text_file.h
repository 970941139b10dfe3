// Files of text, read as a whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace io {

// The longest text that is read as a whole.
inline constexpr std::int64_t kMaxTextBytes = std::int64_t{1} << 30;

// Reads a file or a pipe. Throws IoError if it is something else (/dev/zero has no end), has more
// than kMaxTextBytes or cannot be read.
HEED_API std::string read_text_file(const std::filesystem::path& path);

// Reads standard input to its end. Throws IoError if it has more than kMaxTextBytes or cannot be
// read.
HEED_API std::string read_standard_input();

// Reads a regular file of a model's folder; never waits for a pipe. Throws FormatError if it has
// more than `max_bytes`, naming the `kind` of file ("an index"), and IoError if it is no regular
// file or cannot be read.
HEED_API std::string read_whole_file(const std::filesystem::path& path, std::string_view kind,
                                     std::int64_t max_bytes = kMaxTextBytes);

// Collects the files that read_text_file() and read_whole_file() read on this thread during its
// lifetime, each once, in order. Of several such objects on a thread the latest collects.
class HEED_API ReadFiles {
 public:
  ReadFiles();
  ~ReadFiles();
  ReadFiles(const ReadFiles&) = delete;
  ReadFiles& operator=(const ReadFiles&) = delete;

  const std::vector<std::filesystem::path>& paths() const noexcept { return paths_; }
  void add(const std::filesystem::path& path);

 private:
  ReadFiles* outer_;
  std::vector<std::filesystem::path> paths_;
};

// A checksum that identifies a text: 64-bit FNV-1a, in hexadecimal.
HEED_API std::string checksum(std::string_view text);

}}}  // namespace heed::v0::io
