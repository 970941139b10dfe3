#include "io/byte_source.h"

#include <algorithm>
#include <cassert>
#include <cerrno>

#include "io/io_error.h"

namespace heed { inline namespace v0 { namespace io {

using platform::FileDescriptor;
using platform::FileKind;

FileDescriptor open_for_reading(const std::filesystem::path& path) {
  check_path("read", path);
  FileDescriptor file = platform::open_to_read(path, platform::PipesWithoutWriter::kDoNotWait);
  if (file.get() < 0) throw_io_error("read", path, errno);
  return file;
}

std::int64_t regular_file_size(const FileDescriptor& file, const std::filesystem::path& path) {
  const auto status = platform::status_of(file.get());
  if (!status) throw_io_error("read", path, errno);
  if (status->kind == FileKind::kFolder) throw_io_error("read", path, EISDIR);
  if (status->kind != FileKind::kRegular) {
    throw IoError(fmt::format("cannot read '{}': not a regular file", path.string()));
  }
  return status->size;
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
    const std::int64_t count = platform::read_some_at(file_.get(), offset, out);
    if (count < 0) throw_io_error("read", name(), errno);
    if (count == 0) {
      throw IoError(fmt::format("cannot read '{}': it shrank while it was read", name()));
    }
    out = out.subspan(static_cast<std::size_t>(count));
    offset += count;
  }
}

}}}  // namespace heed::v0::io
