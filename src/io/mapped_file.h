// A file that the operating system maps into memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace heed { inline namespace v0 { namespace io {

// A regular file, mapped for reading: pages are read on first access. If another process shortens
// the file, access beyond its new end terminates the program (SIGBUS).
class MappedFile {
 public:
  // Throws IoError if the path names no regular file, an empty one, or one that cannot be read.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // The name in error messages: the path.
  const std::string& name() const noexcept { return name_; }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

 private:
  std::string name_;
  std::span<const std::byte> bytes_;
};

}}}  // namespace heed::v0::io
