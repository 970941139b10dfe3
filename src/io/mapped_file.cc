#include "io/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>

#include "io/byte_source.h"

namespace heed { inline namespace v0 { namespace io {

MappedFile::MappedFile(const std::filesystem::path& path) : name_(path.string()) {
  const FileDescriptor file = open_for_reading(path);
  const auto size = static_cast<std::size_t>(regular_file_size(file, path));
  if (size == 0) throw IoError(fmt::format("cannot read '{}': it is empty", name_));
  // The mapping outlives the descriptor.
  void* const begin = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (begin == MAP_FAILED) throw_io_error("map", path, errno);
  bytes_ = {static_cast<const std::byte*>(begin), size};
}

MappedFile::~MappedFile() {
  // munmap() takes no pointer to const.
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}}}  // namespace heed::v0::io
