// Files under names that nobody can foresee, and what killed processes have left of them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "io/posix_file.h"

namespace heed::inline v0::io {

// ".heed-" and 16 hexadecimal digits drawn by the system, then `ending`.
std::string random_name(std::string_view ending);

// A new file in a folder, `.heed-*.tmp`, that its owner alone may read and write. Somebody who may
// write into the folder can neither foresee its name nor have a link followed that stands there.
// While it is open it is locked: that is how sweep_temporary_files() knows that it is in use.
class TemporaryFile {
 public:
  // Throws std::system_error when the system refuses.
  explicit TemporaryFile(const std::filesystem::path& folder);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();  // removes it, unless it was renamed

  int descriptor() const { return file_.get(); }
  // Gives it its name. Throws std::system_error; it keeps its old one then.
  void rename(const std::filesystem::path& path);

 private:
  std::filesystem::path path_;  // empty once it was renamed
  FileDescriptor file_;
};

// Removes temporary files of this user from a folder that no process has open and nobody has
// written to for an hour. What cannot be looked at, or be locked, is left alone. Does nothing where
// the folder is the one that this process swept last.
void sweep_temporary_files(const std::filesystem::path& folder) noexcept;

}  // namespace heed::inline v0::io
