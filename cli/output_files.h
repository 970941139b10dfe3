// Files that a verb writes: all of them, or none.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace heed::cli {

// Reserve every path first, then write each, then commit. Each file is written under a temporary
// name beside its path; until commit() gives them their names nothing at the paths has changed, and
// without commit() the temporary files are removed. Every member throws IoError when the operating
// system refuses.
class OutputFiles {
 public:
  OutputFiles() = default;
  ~OutputFiles();
  OutputFiles(const OutputFiles&) = delete;
  OutputFiles& operator=(const OutputFiles&) = delete;

  // Says that `path`, given by `option`, will only be read. Reserving it is refused afterwards.
  void protect(const std::string& option, const std::filesystem::path& path);

  // Checks that a file can come to stand at `path`. Throws UsageError when another option names the
  // same file.
  void reserve(const std::string& option, const std::filesystem::path& path);

  // Calls write(temporary) to write the file of a reserved option.
  using Writer = std::function<void(const std::filesystem::path& temporary)>;
  void write(const std::string& option, const Writer& writer);
  void write_text(const std::string& option, std::string_view text);

  void commit();

 private:
  struct File {
    std::string option;
    std::filesystem::path path;       // as the user gave it
    std::filesystem::path target;     // links followed
    std::filesystem::path temporary;  // empty for a file that is only read
  };

  void add(const std::string& option, const std::filesystem::path& path, bool is_output);
  File& file_of(const std::string& option);

  std::vector<File> files_;
};

}  // namespace heed::cli
