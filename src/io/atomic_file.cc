#include "io/atomic_file.h"

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <system_error>

#include "core/platform_files.h"
#include "io/io_error.h"

namespace heed { inline namespace v0 { namespace io {

namespace {

namespace fs = std::filesystem;

constexpr const char* kWrite = "write";
constexpr int kMostLinks = 40;  // the limit of Linux

// Follows the links of the path's folder, and the path itself as long as it is a link.
fs::path follow_links(const fs::path& path) {
  fs::path target = fs::absolute(path);
  for (int links = 0; links < kMostLinks; ++links) {
    if (!target.has_filename() || target.filename() == "." || target.filename() == "..") {
      return fs::canonical(target);
    }
    target = fs::canonical(target.parent_path()) / target.filename();
    if (!fs::is_symlink(fs::symlink_status(target))) return target;
    target = target.parent_path() / fs::read_symlink(target);
  }
  throw std::system_error(ELOOP, std::generic_category());
}

// Calls act(); turns an exception of the standard library into an IoError that names `path`.
template <class Act>
auto checked(const fs::path& path, const Act& act) {
  try {
    return act();
  } catch (const std::system_error& error) {
    throw_io_error(kWrite, path, error.code().value());
  }
}

// Makes a rename durable, where the system can; the rename is atomic anyway.
void synchronize_folder(const fs::path& folder) {
  if (!platform::synchronize_folder(folder)) throw_io_error("bring to disk", folder, errno);
}

}  // namespace

fs::path resolve_target(const fs::path& path) {
  check_path(kWrite, path);
  return checked(path, [&] {
    fs::path target = follow_links(path);
    const fs::file_status status = fs::status(target);
    if (fs::is_directory(status)) throw_io_error(kWrite, path, EISDIR);
    if (fs::exists(status) && !fs::is_regular_file(status)) {
      throw IoError(fmt::format("cannot write '{}': not a regular file", path.string()));
    }
    return target;
  });
}

AtomicFile::AtomicFile(const fs::path& path)
    : path_(resolve_target(path)),
      folder_(path_.parent_path()),
      old_ending_(old_ending(path_)),
      temporary_(checked(path, [this] { return TemporaryFile(folder_); })) {
  sweep_temporary_files(folder_);
}

AtomicFile::~AtomicFile() { take_back(); }

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const std::int64_t count = platform::write_some(temporary_.descriptor(), bytes);
    if (count < 0) throw_io_error(kWrite, path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

// Does everything that can fail before the rename.
void AtomicFile::seal() {
  const std::optional<unsigned> old = platform::permissions_of(path_);
  replaces_ = old.has_value();
  const unsigned permissions = replaces_ ? *old : platform::usual_permissions();
  const int file = temporary_.descriptor();
  if (!platform::set_permissions(file, permissions) || !platform::synchronize(file)) {
    throw_io_error(kWrite, path_, errno);
  }
}

// Keeps the old file under another name. The lock shows other processes, which ask for an exclusive
// one, that the file is needed. A file that cannot be read is not locked; other processes cannot
// read it either and leave it alone. Where open files cannot be replaced there is no lock, and
// another process that saves the same path meanwhile may remove what is kept.
void AtomicFile::keep_old() {
  if (!replaces_) return;
  fs::path old = folder_ / checked(path_, [this] { return random_name(old_ending_); });
  if (platform::replaces_open_files()) {
    old_lock_ = platform::open_to_read(path_, platform::PipesWithoutWriter::kDoNotWait);
    platform::try_lock_shared(old_lock_.get());
  }
  if (platform::add_name(path_, old)) old_ = std::move(old);
}

void AtomicFile::place() {
  checked(path_, [this] { temporary_.rename(path_); });
  is_placed_ = true;
}

// Returns true if the path holds its old contents again.
bool AtomicFile::take_back() noexcept {
  bool is_back = true;
  if (is_placed_ && !replaces_) {
    is_back = platform::remove_file(path_);
  } else if (is_placed_) {
    is_back = !old_.empty() && platform::rename_file(old_, path_);
    if (is_back) old_.clear();
  }
  if (is_back) finish();
  return is_back;
}

void AtomicFile::finish() noexcept {
  if (!old_.empty()) platform::remove_file(old_);
  old_.clear();
  // before the sweep: a killed process may have left another name of the same file
  old_lock_ = platform::FileDescriptor(-1);
  is_placed_ = false;
}

void AtomicFile::commit() {
  AtomicFile* const self = this;
  commit_all({&self, 1});
}

void AtomicFile::commit_all(std::span<AtomicFile* const> files) {
  for (AtomicFile* file : files) file->seal();
  if (files.size() > 1) {
    for (AtomicFile* file : files) file->keep_old();
  }
  try {
    for (AtomicFile* file : files) file->place();
  } catch (const IoError& error) {
    std::string replaced;
    for (AtomicFile* file : files) {
      if (!file->take_back()) replaced += fmt::format("; '{}' is replaced", file->path_.string());
    }
    throw IoError(error.what() + replaced);
  }
  for (AtomicFile* file : files) {
    file->finish();
    sweep_old_files(file->folder_, file->old_ending_);
  }
  for (AtomicFile* file : files) synchronize_folder(file->folder_);
}

void write_file_atomically(const fs::path& path, const std::function<void(const ByteSink&)>& fill) {
  AtomicFile file(path);
  fill([&file](std::span<const std::byte> bytes) { file.write(bytes); });
  file.commit();
}

}}}  // namespace heed::v0::io
