#include "io/text_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <span>
#include <utility>
#include <vector>

#include "core/platform_files.h"
#include "heed/core/error.h"
#include "io/byte_source.h"
#include "io/io_error.h"

namespace heed { inline namespace v0 { namespace io {

namespace {

using platform::FileDescriptor;
using platform::FileKind;

thread_local ReadFiles* current_collection = nullptr;

void note_read(const std::filesystem::path& path) {
  if (current_collection != nullptr) current_collection->add(path);
}

constexpr std::size_t kBlockBytes = std::size_t{1} << 18;

[[noreturn]] void refuse_text(const std::filesystem::path& path, std::string_view reason) {
  throw IoError(fmt::format("cannot read '{}': {}", path.string(), reason));
}

void check_text_size(std::int64_t size, const std::filesystem::path& path) {
  if (size > kMaxTextBytes) {
    refuse_text(path, fmt::format("it has more than {} bytes", kMaxTextBytes));
  }
}

// Reads the rest of an open file, of which `size` bytes are expected.
std::string read_to_end(int file, std::size_t size, const std::filesystem::path& path) {
  std::string text;
  text.reserve(size);
  std::vector<char> block(kBlockBytes);
  while (true) {
    const std::int64_t count =
        platform::read_some(file, std::as_writable_bytes(std::span<char>(block)));
    if (count < 0) throw_io_error("read", path, errno);
    if (count == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(count));
    check_text_size(static_cast<std::int64_t>(text.size()), path);
  }
}

}  // namespace

std::string read_text_file(const std::filesystem::path& path) {
  const FileDescriptor file = platform::open_to_read(path, platform::PipesWithoutWriter::kWait);
  if (file.get() < 0) throw_io_error("read", path, errno);
  const auto status = platform::status_of(file.get());
  if (!status) throw_io_error("read", path, errno);
  if (status->kind == FileKind::kFolder) refuse_text(path, "it is a directory");
  if (status->kind != FileKind::kRegular && status->kind != FileKind::kPipe) {
    refuse_text(path, "neither a file nor a pipe");
  }
  check_text_size(status->size, path);
  note_read(path);
  return read_to_end(file.get(), static_cast<std::size_t>(status->size), path);
}

std::string read_standard_input() {
  return read_to_end(platform::standard_input(), 0, "standard input");
}

std::string read_whole_file(const std::filesystem::path& path, std::string_view kind,
                            std::int64_t max_bytes) {
  FileSource file(path);
  if (file.size() > max_bytes) {
    throw FormatError(file.name(), 0,
                      fmt::format("the file has {} bytes, expected {} of at most {}", file.size(),
                                  kind, max_bytes));
  }
  note_read(path);
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(0, std::as_writable_bytes(std::span<char>(text)));
  return text;
}

ReadFiles::ReadFiles() : outer_(std::exchange(current_collection, this)) {}

ReadFiles::~ReadFiles() { current_collection = outer_; }

void ReadFiles::add(const std::filesystem::path& path) {
  if (std::find(paths_.begin(), paths_.end(), path) == paths_.end()) paths_.push_back(path);
}

std::string checksum(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

}}}  // namespace heed::v0::io
