#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>

namespace heed { inline namespace v0 { namespace io {

namespace {

namespace fs = std::filesystem;

constexpr const char* kWrite = "write";
constexpr int kMostLinks = 40;  // the limit of Linux
constexpr mode_t kPermissions = 0777;

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

// Reads the umask from /proc if it is there: the system call reads it by changing it, for all
// threads.
mode_t umask_of_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("Umask:", 0) == 0) {
      return static_cast<mode_t>(std::stoul(line.substr(6), nullptr, 8));
    }
  }
  const mode_t mask = ::umask(0077);
  ::umask(mask);
  return mask;
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

// Makes a rename durable. Some file systems cannot synchronise folders; the rename is still atomic.
void synchronize_folder(const fs::path& folder) {
  const FileDescriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.get() >= 0 && ::fsync(descriptor.get()) != 0 && errno != EINVAL) {
    throw_io_error("bring to disk", folder, errno);
  }
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
    const ssize_t count = ::write(temporary_.descriptor(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_io_error(kWrite, path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

// Does everything that can fail before the rename.
void AtomicFile::seal() {
  struct stat old {};
  replaces_ = ::stat(path_.c_str(), &old) == 0;
  const mode_t permissions = replaces_ ? old.st_mode & kPermissions : 0666U & ~umask_of_process();
  const int file = temporary_.descriptor();
  if (::fchmod(file, permissions) != 0 || ::fsync(file) != 0) throw_io_error(kWrite, path_, errno);
}

// Keeps the old file under another name. The lock shows other processes, which ask for an exclusive
// one, that the file is needed. A file that cannot be read is not locked; other processes cannot
// read it either and leave it alone.
void AtomicFile::keep_old() {
  if (!replaces_) return;
  fs::path old = folder_ / checked(path_, [this] { return random_name(old_ending_); });
  old_lock_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ::flock(old_lock_.get(), LOCK_SH | LOCK_NB);
  if (::link(path_.c_str(), old.c_str()) == 0) old_ = std::move(old);
}

void AtomicFile::place() {
  checked(path_, [this] { temporary_.rename(path_); });
  is_placed_ = true;
}

// Returns true if the path holds its old contents again.
bool AtomicFile::take_back() noexcept {
  bool is_back = true;
  if (is_placed_ && !replaces_) {
    is_back = ::unlink(path_.c_str()) == 0;
  } else if (is_placed_) {
    is_back = !old_.empty() && std::rename(old_.c_str(), path_.c_str()) == 0;
    if (is_back) old_.clear();
  }
  if (is_back) finish();
  return is_back;
}

void AtomicFile::finish() noexcept {
  if (!old_.empty()) ::unlink(old_.c_str());
  old_.clear();
  // before the sweep: a killed process may have left another name of the same file
  old_lock_ = FileDescriptor(-1);
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
