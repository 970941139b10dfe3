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

// Takes bytes, one chunk after another.
using ByteSink = std::function<void(std::span<const std::byte>)>;

// Where a file written at `path` ends up: symbolic links are followed, to a file that is missing
// too. Throws IoError where something else than a file stands there, or its folder is missing, and
// InvalidArgument where the path holds a NUL.
HEED_API std::filesystem::path resolve_target(const std::filesystem::path& path);

// Writes to a temporary file beside `path`, which commit() gives its name. Until then whatever
// stands at `path` stays as it is; without commit() the temporary file is removed.
//
// A symbolic link at `path` is followed. The file gets the permissions of the one that it replaces,
// or those that the umask leaves; until then its owner alone may read it. Every member throws
// IoError when the operating system refuses.
class HEED_API AtomicFile {
 public:
  explicit AtomicFile(const std::filesystem::path& path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();  // takes an unfinished commit back

  void write(std::span<const std::byte> bytes);

  // Makes sure that the bytes are on disk, then renames.
  void commit();

  // All of them or none, once: where one cannot be renamed, those that were are taken back. Their
  // old files are kept meanwhile as `.heed-*-NAME.old`. A process that is killed in between leaves
  // these: what stood at each path stays on disk until a later save of it is complete, which
  // removes what no living process keeps. They are not put back by themselves, for nobody knows
  // what has happened to the paths since. A file system without hard links keeps none: there the
  // message says what was replaced.
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
  FileDescriptor old_lock_{-1};
  std::filesystem::path
      old_;  // another name of the file that is replaced; empty where none is kept
  bool replaces_ = false;
  bool is_placed_ = false;
};

// Writes a whole file: `fill` gives its bytes to the sink that it is called with.
void write_file_atomically(const std::filesystem::path& path,
                           const std::function<void(const ByteSink&)>& fill);

}}}  // namespace heed::v0::io
