// Files that a verb writes: all of them, or none.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/atomic_file.h"

namespace heed::cli {

// Reserve every path first, then write each, then commit. Each file is written under a temporary
// name beside its path; until commit() gives them their names nothing at the paths has changed, and
// without commit() the temporary files are removed. Every member throws IoError when the operating
// system refuses.
class OutputFiles {
 public:
  // Says that `path`, given by `option`, will only be read. Reserving it is refused afterwards.
  void protect(const std::string& option, const std::filesystem::path& path);

  // Checks that a file can come to stand at `path`. Throws UsageError when another option names the
  // same file.
  void reserve(const std::string& option, const std::filesystem::path& path);

  // Write the file of a reserved option; the writer gives its bytes to the sink.
  using Writer = std::function<void(const io::ByteSink& sink)>;
  void write(const std::string& option, const Writer& writer);
  void write_text(const std::string& option, std::string_view text);

  // Gives all files their names, or none: a failure undoes what was renamed before it.
  void commit();

 private:
  struct File {
    std::string option;
    std::filesystem::path path;            // as the user gave it
    std::filesystem::path target;          // links followed
    std::unique_ptr<io::AtomicFile> file;  // nothing until it is written
  };

  File& file_of(const std::string& option);

  std::vector<File> files_;
};

// The files and folders that this process has written so far, as the user named them: for the
// message of a failure that came afterwards.
void note_written(const std::filesystem::path& path);
const std::vector<std::filesystem::path>& written_paths();

}  // namespace heed::cli
