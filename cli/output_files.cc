#include "output_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <span>
#include <system_error>

#include "heed/core/error.h"
#include "io/io_error.h"
#include "verbs.h"

namespace heed::cli {

namespace fs = std::filesystem;

namespace {

std::vector<fs::path>& written() {
  static std::vector<fs::path> paths;
  return paths;
}

}  // namespace

void OutputFiles::protect(const std::string& option, const fs::path& path) {
  std::error_code ignored;  // the function that reads the file reports the error
  files_.push_back({option, path, fs::weakly_canonical(fs::absolute(path), ignored), nullptr});
}

void OutputFiles::reserve(const std::string& option, const fs::path& path) {
  const fs::path target = io::resolve_target(path);
  for (const File& other : files_) {
    if (other.target == target) {
      throw UsageError(
          fmt::format("{} and {} name the same file, '{}'", other.option, option, path.string()));
    }
  }
  if (::access(target.parent_path().c_str(), W_OK) != 0) io::throw_io_error("write", path, errno);
  files_.push_back({option, path, target, nullptr});
}

OutputFiles::File& OutputFiles::file_of(const std::string& option) {
  const auto file = std::find_if(files_.begin(), files_.end(),
                                 [&](const File& each) { return each.option == option; });
  assert(file != files_.end());
  return *file;
}

void OutputFiles::write(const std::string& option, const Writer& writer) {
  File& file = file_of(option);
  file.file = std::make_unique<io::AtomicFile>(file.path);
  writer([&file](std::span<const std::byte> bytes) { file.file->write(bytes); });
}

void OutputFiles::write_text(const std::string& option, std::string_view text) {
  write(option, [text](const io::ByteSink& sink) { sink(std::as_bytes(std::span(text))); });
}

void OutputFiles::commit() {
  std::vector<io::AtomicFile*> files;
  for (const File& file : files_) {
    if (file.file != nullptr) files.push_back(file.file.get());
  }
  io::AtomicFile::commit_all(files);
  for (const File& file : files_) {
    if (file.file != nullptr) note_written(file.path);
  }
  files_.clear();
}

void note_written(const fs::path& path) { written().push_back(path); }
const std::vector<fs::path>& written_paths() { return written(); }

nlohmann::json number_lists(FloatView view) {
  if (view.rank() == 0) return *view.data();
  auto list = nlohmann::json::array();
  for (std::int64_t i = 0; i < view.extent(0); ++i) list.push_back(number_lists(view.select(0, i)));
  return list;
}

}  // namespace heed::cli
