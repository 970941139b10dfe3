#include "io/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cassert>
#include <cerrno>

namespace heed { inline namespace v0 { namespace io {

FileDescriptor open_for_reading(const std::filesystem::path& path) {
  check_path("read", path);
  // O_NONBLOCK keeps a named pipe without a writer from waiting; regular files ignore it.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) throw_io_error("read", path, errno);
  return file;
}

std::int64_t regular_file_size(const FileDescriptor& file, const std::filesystem::path& path) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) throw_io_error("read", path, errno);
  if (S_ISDIR(status.st_mode)) throw_io_error("read", path, EISDIR);
  if (!S_ISREG(status.st_mode)) {
    throw IoError(fmt::format("cannot read '{}': not a regular file", path.string()));
  }
  return status.st_size;
}

void MemorySource::read(std::int64_t offset, std::span<std::byte> out) {
  const auto chosen = bytes_.subspan(static_cast<std::size_t>(offset), out.size());
  std::copy(chosen.begin(), chosen.end(), out.begin());
}

FileSource::FileSource(const std::filesystem::path& path)
    : FileSource(path, open_for_reading(path)) {}

FileSource::FileSource(const std::filesystem::path& path, FileDescriptor file)
    : ByteSource(path.string(), regular_file_size(file, path)), file_(std::move(file)) {}

void FileSource::read(std::int64_t offset, std::span<std::byte> out) {
  assert(offset >= 0 && static_cast<std::int64_t>(out.size()) <= size() - offset);
  while (!out.empty()) {
    const ssize_t count = ::pread(file_.get(), out.data(), out.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_io_error("read", name(), errno);
    if (count == 0) {
      throw IoError(fmt::format("cannot read '{}': it shrank while it was read", name()));
    }
    out = out.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
}

}}}  // namespace heed::v0::io
