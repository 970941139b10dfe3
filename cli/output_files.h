// Writes the files of a verb, all of them or none, and arrays as JSON.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/tensor.h"
#include "io/atomic_file.h"

namespace heed::cli {

// Reserve every path first, then write each file, then commit. Each file is written under a
// temporary name next to its path. Until commit() renames them, no path has changed; without
// commit() the temporary files are removed. Every member throws IoError when the operating system
// refuses.
class OutputFiles {
 public:
  // Marks `path`, given by `option`, as read only: reserving it afterwards is refused.
  void protect(const std::string& option, const std::filesystem::path& path);

  // Checks that a file can be created at `path`. Throws UsageError when another option names the
  // same file.
  void reserve(const std::string& option, const std::filesystem::path& path);

  // Writes the file of a reserved option; the writer passes its bytes to the sink.
  using Writer = std::function<void(const io::ByteSink& sink)>;
  void write(const std::string& option, const Writer& writer);
  void write_text(const std::string& option, std::string_view text);

  // Gives all files their names or none: a failure undoes the renames before it.
  void commit();

 private:
  struct File {
    std::string option;
    std::filesystem::path path;            // as given by the user
    std::filesystem::path target;          // after following links
    std::unique_ptr<io::AtomicFile> file;  // null until written
  };

  File& file_of(const std::string& option);

  std::vector<File> files_;
};

// The files and folders that this process has written, as the user named them, for the message of a
// later failure.
void note_written(const std::filesystem::path& path);
const std::vector<std::filesystem::path>& written_paths();

// Returns nested lists, as deep as the array's rank.
nlohmann::json number_lists(FloatView view);

}  // namespace heed::cli
