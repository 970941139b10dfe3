// Sources of bytes for the readers: a file or memory, at any offset or in sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "core/platform_files.h"

namespace heed { inline namespace v0 { namespace io {

// Bytes that can be read at any offset. Their number is the true one, not one that a file declares.
class ByteSource {
 public:
  ByteSource(std::string name, std::int64_t size) : name_(std::move(name)), size_(size) {}
  virtual ~ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  // The name in error messages.
  const std::string& name() const noexcept { return name_; }
  std::int64_t size() const noexcept { return size_; }

  // Fills `out` with the bytes from `offset`; all of them must exist.
  virtual void read(std::int64_t offset, std::span<std::byte> out) = 0;

 private:
  std::string name_;
  std::int64_t size_;
};

class MemorySource : public ByteSource {
 public:
  MemorySource(std::string name, std::span<const std::byte> bytes)
      : ByteSource(std::move(name), static_cast<std::int64_t>(bytes.size())), bytes_(bytes) {}
  void read(std::int64_t offset, std::span<std::byte> out) override;

 private:
  std::span<const std::byte> bytes_;
};

// Throws IoError when the system refuses. Never waits, not even for the writer of a named pipe.
platform::FileDescriptor open_for_reading(const std::filesystem::path& path);

// Returns the size in bytes. Throws IoError if the file, opened by that path, is not a regular
// file.
std::int64_t regular_file_size(const platform::FileDescriptor& file,
                               const std::filesystem::path& path);

// A regular file. Throws IoError if the path is no regular file or cannot be read.
class FileSource : public ByteSource {
 public:
  explicit FileSource(const std::filesystem::path& path);
  void read(std::int64_t offset, std::span<std::byte> out) override;

 private:
  FileSource(const std::filesystem::path& path, platform::FileDescriptor file);
  platform::FileDescriptor file_;
};

// Bytes that are read in sequence.
class ByteStream {
 public:
  ByteStream(std::string name, std::int64_t size) : name_(std::move(name)), size_(size) {}
  virtual ~ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;

  const std::string& name() const noexcept { return name_; }
  std::int64_t size() const noexcept { return size_; }
  std::int64_t remaining() const noexcept { return size_ - position_; }
  std::int64_t position() const noexcept { return position_; }

  // Fills `out` with the next bytes; at least out.size() bytes must remain.
  void read(std::span<std::byte> out) {
    read_next(out);
    position_ += static_cast<std::int64_t>(out.size());
  }

 private:
  virtual void read_next(std::span<std::byte> out) = 0;

  std::string name_;
  std::int64_t size_;
  std::int64_t position_ = 0;
};

// A whole source, from its first byte to its last.
class SourceStream : public ByteStream {
 public:
  explicit SourceStream(ByteSource& source)
      : ByteStream(source.name(), source.size()), source_(source) {}

 private:
  void read_next(std::span<std::byte> out) override { source_.read(position(), out); }

  ByteSource& source_;
};

}}}  // namespace heed::v0::io
