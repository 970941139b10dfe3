// A file that is read where the operating system maps it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace heed { inline namespace v0 { namespace io {

// A regular file, mapped for reading: pages are read when they are touched. Touching what another
// process has cut off meanwhile ends the program (SIGBUS).
class MappedFile {
 public:
  // Throws IoError when the path names no regular file, an empty one, or one that cannot be read.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // What messages call it: the path.
  const std::string& name() const noexcept { return name_; }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
};

}}}  // namespace heed::v0::io
