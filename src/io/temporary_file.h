// Files with unpredictable names, and the removal of those that killed processes left.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/platform_files.h"

namespace heed { inline namespace v0 { namespace io {

// ".heed-" and 16 hexadecimal digits drawn by the system, then `ending`.
std::string random_name(std::string_view ending);

// Returns "-NAME.old" for a file NAME. With random_name() it is the name under which the old
// contents of `path` are kept until all files that belong together are in place. It shows the
// owner: after a kill a person can restore the file, and the next save of `path` removes it. If
// NAME is too long, its end is replaced by a hash.
std::string old_ending(const std::filesystem::path& path);

// A new file `.heed-*.tmp` in a folder; only its owner may read and write it. Another user of the
// folder can neither predict its name nor plant a link in its place. It is locked while it is open,
// so that sweep_temporary_files() sees that it is in use.
class TemporaryFile {
 public:
  // Throws std::system_error when the system refuses.
  explicit TemporaryFile(const std::filesystem::path& folder);
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile();  // removes it, unless it was renamed

  // Negative once the file was renamed, where files that are open could not be replaced.
  int descriptor() const { return file_.get(); }
  // Renames the file to `path`. If it throws std::system_error, the file keeps its old name.
  void rename(const std::filesystem::path& path);

 private:
  std::filesystem::path path_;  // empty once it was renamed
  platform::FileDescriptor file_;
};

// Removes this user's temporary files that no process has open from a folder. Files that cannot be
// examined or locked are left alone. Does nothing if this process swept the same folder last.
void sweep_temporary_files(const std::filesystem::path& folder) noexcept;

// Removes the files that random_name(ending) named and that no process has locked. Called once the
// files that they were kept for have been replaced for good.
void sweep_old_files(const std::filesystem::path& folder, std::string_view ending) noexcept;

}}}  // namespace heed::v0::io
