// Files that appear complete or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>

#include "io/posix_file.h"

namespace heed::inline v0::io {

// Takes bytes, one chunk after another.
using ByteSink = std::function<void(std::span<const std::byte>)>;

// Writes to a temporary file beside `path`, which commit() gives its name. Until then whatever
// stands at `path` stays as it is; without commit() the temporary file is removed.
//
// A symbolic link at `path` is followed and a file's permissions are kept. Every member throws
// IoError when the operating system refuses.
class AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);

  // Makes sure that the bytes are on disk, then renames.
  void commit();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  FileDescriptor file_;
};

// Writes a whole file: `fill` gives its bytes to the sink that it is called with.
void write_file_atomically(const std::filesystem::path& path,
                           const std::function<void(const ByteSink&)>& fill);

}  // namespace heed::inline v0::io
