#include "io/mapped_file.h"

#include <cerrno>

#include "core/platform_files.h"
#include "io/byte_source.h"
#include "io/io_error.h"

namespace heed { inline namespace v0 { namespace io {

MappedFile::MappedFile(const std::filesystem::path& path) : name_(path.string()) {
  const platform::FileDescriptor file = open_for_reading(path);
  const auto size = static_cast<std::size_t>(regular_file_size(file, path));
  if (size == 0) throw IoError(fmt::format("cannot read '{}': it is empty", name_));
  const std::byte* const begin = platform::map_file(file.get(), size);
  if (begin == nullptr) throw_io_error("map", path, errno);
  bytes_ = {begin, size};
}

MappedFile::~MappedFile() { platform::unmap_file(bytes_); }

}}}  // namespace heed::v0::io
