#include "output_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <fstream>
#include <system_error>

#include "heed/error.h"
#include "verbs.h"

namespace heed::cli {

namespace fs = std::filesystem;

namespace {

[[noreturn]] void refuse(const fs::path& path, const std::string& reason) {
  throw IoError(fmt::format("cannot write '{}': {}", path.string(), reason));
}

void check_writable(const fs::path& path, const fs::path& target) {
  std::error_code error;
  const fs::file_status status = fs::status(target, error);
  if (fs::is_directory(status)) refuse(path, "it is a directory");
  if (fs::exists(status) && !fs::is_regular_file(status)) refuse(path, "it is not a regular file");
  if (::access(target.parent_path().c_str(), W_OK) != 0) {
    refuse(path, std::generic_category().message(errno));
  }
}

}  // namespace

OutputFiles::~OutputFiles() {
  std::error_code ignored;
  for (const File& file : files_) {
    if (!file.temporary.empty()) fs::remove(file.temporary, ignored);
  }
}

void OutputFiles::add(const std::string& option, const fs::path& path, bool is_output) {
  std::error_code error;
  const fs::path target = fs::weakly_canonical(fs::absolute(path), error);
  if (error) refuse(path, error.message());
  for (const File& other : files_) {
    if (is_output && other.target == target) {
      throw UsageError(
          fmt::format("{} and {} name the same file, '{}'", other.option, option, path.string()));
    }
  }
  if (is_output) check_writable(path, target);
  const auto name = fmt::format(".heed-{}-{}-staged.tmp", ::getpid(), files_.size());
  files_.push_back({option, path, target, is_output ? target.parent_path() / name : fs::path()});
}

void OutputFiles::protect(const std::string& option, const fs::path& path) {
  add(option, path, false);
}

void OutputFiles::reserve(const std::string& option, const fs::path& path) {
  add(option, path, true);
}

OutputFiles::File& OutputFiles::file_of(const std::string& option) {
  const auto file = std::find_if(files_.begin(), files_.end(),
                                 [&](const File& each) { return each.option == option; });
  assert(file != files_.end());
  return *file;
}

void OutputFiles::write(const std::string& option, const Writer& writer) {
  const File& file = file_of(option);
  writer(file.temporary);
  std::error_code error;
  const fs::file_status old = fs::status(file.target, error);
  if (fs::exists(old)) fs::permissions(file.temporary, old.permissions(), error);
}

void OutputFiles::write_text(const std::string& option, std::string_view text) {
  const fs::path path = file_of(option).path;
  write(option, [&](const fs::path& temporary) {
    std::ofstream stream(temporary, std::ios::binary);
    stream << text << std::flush;
    if (!stream) refuse(path, std::generic_category().message(errno));
  });
}

void OutputFiles::commit() {
  for (File& file : files_) {
    if (file.temporary.empty()) continue;
    std::error_code error;
    fs::rename(file.temporary, file.target, error);
    if (error) refuse(file.path, error.message());
    file.temporary.clear();
  }
}

}  // namespace heed::cli
