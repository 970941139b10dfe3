// Files under names that nobody can foresee, and what killed processes have left of them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "io/posix_file.h"

namespace heed { inline namespace v0 { namespace io {

// ".heed-" and 16 hexadecimal digits drawn by the system, then `ending`.
std::string random_name(std::string_view ending);

// "-NAME.old" for a file NAME: with random_name() the name under which what stood at `path` is kept
// until all files that belong together are in place. It says to whom it belongs: after a kill a
// person can put it back, and the next save of `path` removes it. Of a NAME that is too long the
// end is a hash.
std::string old_ending(const std::filesystem::path& path);

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

// Removes temporary files of this user from a folder that no process has open. What cannot be
// looked at, or be locked, is left alone. Does nothing where the folder is the one that this
// process swept last.
void sweep_temporary_files(const std::filesystem::path& folder) noexcept;

// Removes the files that random_name(ending) named and on which nobody holds a lock: called once
// what they were kept for is replaced for good.
void sweep_old_files(const std::filesystem::path& folder, std::string_view ending) noexcept;

}}}  // namespace heed::v0::io
