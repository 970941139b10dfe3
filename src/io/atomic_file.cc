#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>

namespace heed::inline v0::io {

namespace {

namespace fs = std::filesystem;

// Where a file renamed to `path` has to end up: a link at `path` is followed, and what is not a
// file, /dev/null say, must not be replaced by one.
fs::path resolve_target(const fs::path& path) {
  check_path("write", path);
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  if (error) throw_io_error("write", path, error.value());
  fs::path target = fs::weakly_canonical(absolute, error);
  if (error) throw_io_error("write", path, error.value());
  const fs::file_status status = fs::status(target, error);
  if (fs::is_directory(status)) throw_io_error("write", path, EISDIR);
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    throw IoError(fmt::format("cannot write '{}': not a regular file", path.string()));
  }
  if (!target.has_filename()) throw_io_error("write", path, ENOENT);
  return target;
}

// A name that no other thread or process uses at this moment; O_EXCL catches leftovers.
fs::path temporary_name(const fs::path& target) {
  static std::atomic<unsigned> counter{0};
  return target.parent_path() / fmt::format(".heed-{}-{}.tmp", ::getpid(), counter++);
}

void keep_permissions(const fs::path& target, const FileDescriptor& file) {
  struct stat status {};
  if (::stat(target.c_str(), &status) != 0) return;
  if (::fchmod(file.get(), status.st_mode & 0777U) != 0) throw_io_error("write", target, errno);
}

// Makes a rename durable. Some file systems cannot synchronise folders; the rename is still atomic.
void synchronize_folder(const fs::path& folder) {
  const FileDescriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (descriptor.get() >= 0) ::fsync(descriptor.get());
}

}  // namespace

AtomicFile::AtomicFile(const fs::path& path) : path_(resolve_target(path)), file_(-1) {
  do {
    temporary_ = temporary_name(path_);
    file_ =
        FileDescriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  } while (file_.get() < 0 && errno == EEXIST);
  if (file_.get() < 0) throw_io_error("write", path, errno);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_io_error("write", path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void AtomicFile::commit() {
  keep_permissions(path_, file_);
  if (::fsync(file_.get()) != 0) throw_io_error("write", path_, errno);
  if (::close(file_.release()) != 0) throw_io_error("write", path_, errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) throw_io_error("write", path_, errno);
  temporary_.clear();
  synchronize_folder(path_.parent_path());
}

void write_file_atomically(const fs::path& path, const std::function<void(const ByteSink&)>& fill) {
  AtomicFile file(path);
  fill([&file](std::span<const std::byte> bytes) { file.write(bytes); });
  file.commit();
}

}  // namespace heed::inline v0::io
