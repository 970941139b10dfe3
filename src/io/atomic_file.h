// Files that appear complete or not at all.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>

#include "heed/core/config.h"
#include "io/temporary_file.h"

namespace heed { inline namespace v0 { namespace io {

// Receives bytes, one chunk after another.
using ByteSink = std::function<void(std::span<const std::byte>)>;

// Returns the file that writing to `path` would create: symbolic links are followed, also to a
// missing file. Throws IoError if something other than a file is at that place or its folder is
// missing, and InvalidArgument if the path holds a NUL.
HEED_API std::filesystem::path resolve_target(const std::filesystem::path& path);

// Writes to a temporary file in the folder of `path`; commit() renames it to `path`. Until then the
// old file at `path` is unchanged; without commit() the temporary file is removed.
//
// A symbolic link at `path` is followed. The file gets the permissions of the file that it
// replaces, or those that the umask leaves; until then only its owner may read it. Every member
// throws IoError when the operating system refuses.
class HEED_API AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();  // undoes an unfinished commit

  void write(std::span<const std::byte> bytes);

  // Writes the bytes to disk, then renames the file.
  void commit();

  // Commits all files or none, once: if one cannot be renamed, the others are restored. Meanwhile
  // their old contents are kept as `.heed-*-NAME.old`. A process that is killed in between leaves
  // these files: the old contents of each path stay on disk until a later save of the path is
  // complete, which removes those that no running process keeps. They are not restored
  // automatically, because the paths may have changed since. A file system without hard links keeps
  // no old contents; there the message says which files were replaced.
  static void commit_all(std::span<AtomicFile* const> files);

 private:
  void seal();
  void keep_old();
  void place();
  bool take_back() noexcept;
  void finish() noexcept;

  std::filesystem::path path_;
  std::filesystem::path folder_;
  std::string old_ending_;
  TemporaryFile temporary_;
  platform::FileDescriptor old_lock_{-1};
  std::filesystem::path old_;  // another name of the replaced file; empty if none is kept
  bool replaces_ = false;
  bool is_placed_ = false;
};

// Writes a whole file: `fill` is called with a sink that takes its bytes.
void write_file_atomically(const std::filesystem::path& path,
                           const std::function<void(const ByteSink&)>& fill);

}}}  // namespace heed::v0::io
