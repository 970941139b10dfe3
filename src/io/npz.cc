#include "heed/io/npz.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <string_view>
#include <vector>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/npy_stream.h"
#include "io/zip.h"

namespace heed { inline namespace v0 {

namespace io {

namespace {

constexpr std::string_view kNpySuffix = ".npy";

// Checks the declared sizes of all members against the limit before anything is inflated. Inflating
// stops at the declared size of a member.
void check_inflated_bytes(const ByteSource& archive, const zip::Directory& directory,
                          std::int64_t max_inflated_bytes) {
  std::int64_t left = max_inflated_bytes;
  for (const zip::Entry& entry : directory.entries) {
    if (entry.method != zip::Method::kDeflated) continue;
    if (entry.size > left) {
      throw FormatError(archive.name(), entry.local_offset,
                        fmt::format("member '{}' inflates to {} bytes, of the {} bytes allowed for "
                                    "all members {} are left",
                                    printable(entry.name), entry.size, max_inflated_bytes, left));
    }
    left -= entry.size;
  }
}

std::string array_name(const ByteSource& archive, const zip::Entry& entry) {
  const std::string_view name = entry.name;
  if (name.size() <= kNpySuffix.size() || !name.ends_with(kNpySuffix)) {
    throw FormatError(archive.name(), entry.local_offset,
                      fmt::format("member '{}' is not an .npy file", printable(name)));
  }
  return std::string(name.substr(0, name.size() - kNpySuffix.size()));
}

std::map<std::string, AnyTensor> read_archive(ByteSource& archive,
                                              std::int64_t max_inflated_bytes) {
  zip::Directory directory = zip::read_directory(archive);
  zip::locate_members(archive, directory);
  check_inflated_bytes(archive, directory, max_inflated_bytes);
  std::map<std::string, AnyTensor> arrays;
  for (const zip::Entry& entry : directory.entries) {
    const std::string name = array_name(archive, entry);
    zip::MemberStream stream(archive, entry);
    AnyTensor array = read_npy_stream(stream);
    stream.finish();
    arrays.emplace(name, std::move(array));
  }
  return arrays;
}

// Deflates its input; the result, without a zlib header, grows in memory.
class Deflater {
 public:
  Deflater() {
    constexpr int kMemoryLevel = 8;  // zlib's default
    if (::deflateInit2(&zlib_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, kMemoryLevel,
                       Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::bad_alloc();
    }
  }
  ~Deflater() { ::deflateEnd(&zlib_); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  void put(std::span<const std::byte> bytes) {
    constexpr std::size_t kMaxInput = 1 << 30;  // zlib counts in 32 bits
    while (!bytes.empty()) {
      const auto chunk = bytes.first(std::min(bytes.size(), kMaxInput));
      run(chunk, Z_NO_FLUSH);
      bytes = bytes.subspan(chunk.size());
    }
  }

  std::vector<std::byte> finish() {
    run({}, Z_FINISH);
    return std::move(deflated_);
  }

 private:
  void run(std::span<const std::byte> bytes, int flush) {
    // zlib does not write to its input, although its pointer is not const.
    zlib_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
    zlib_.avail_in = static_cast<uInt>(bytes.size());
    do {
      zlib_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
      zlib_.avail_out = static_cast<uInt>(buffer_.size());
      ::deflate(&zlib_, flush);
      const auto end = buffer_.end() - static_cast<std::ptrdiff_t>(zlib_.avail_out);
      deflated_.insert(deflated_.end(), buffer_.begin(), end);
    } while (zlib_.avail_out == 0);
  }

  z_stream zlib_{};
  std::vector<std::byte> deflated_;
  std::array<std::byte, 1 << 16> buffer_{};
};

// Writes the members in sequence and keeps the directory.
class ArchiveWriter {
 public:
  ArchiveWriter(const ByteSink& sink, NpzCompression compression)
      : sink_(sink), compression_(compression) {}

  // Reads the array before it writes the header, which holds the array's CRC and sizes.
  void add(const std::string& name, const AnyView& array) {
    zip::Entry entry;
    entry.name = name + std::string(kNpySuffix);
    entry.flags = zip::kUtf8Flag;
    entry.local_offset = offset_;
    if (compression_ == NpzCompression::kDeflated) {
      add_deflated(entry, array);
    } else {
      add_stored(entry, array);
    }
    entries_.push_back(std::move(entry));
  }

  void finish() { put(zip::format_directory(entries_, offset_)); }

 private:
  void add_stored(zip::Entry& entry, const AnyView& array) {
    write_npy_stream(array, [&](std::span<const std::byte> bytes) { measure(entry, bytes); });
    entry.stored_size = entry.size;
    put(zip::format_local_header(entry));
    write_npy_stream(array, [&](std::span<const std::byte> bytes) { put(bytes); });
  }

  void add_deflated(zip::Entry& entry, const AnyView& array) {
    Deflater deflater;
    write_npy_stream(array, [&](std::span<const std::byte> bytes) {
      measure(entry, bytes);
      deflater.put(bytes);
    });
    const std::vector<std::byte> deflated = deflater.finish();
    entry.method = zip::Method::kDeflated;
    entry.stored_size = static_cast<std::int64_t>(deflated.size());
    put(zip::format_local_header(entry));
    put(deflated);
  }

  static void measure(zip::Entry& entry, std::span<const std::byte> bytes) {
    if (bytes.empty()) return;  // zlib takes a null pointer for a request to start anew
    entry.size += static_cast<std::int64_t>(bytes.size());
    entry.crc = static_cast<std::uint32_t>(
        ::crc32_z(entry.crc, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
  }

  void put(std::span<const std::byte> bytes) {
    sink_(bytes);
    offset_ += static_cast<std::int64_t>(bytes.size());
  }

  const ByteSink& sink_;
  NpzCompression compression_;
  std::int64_t offset_ = 0;
  std::vector<zip::Entry> entries_;
};

void check_names(const std::map<std::string, AnyView>& arrays) {
  for (const auto& [name, array] : arrays) {
    const std::string_view problem =
        name.empty() ? "the name is empty" : zip::name_problem(name + std::string(kNpySuffix));
    if (problem.empty()) continue;
    throw InvalidArgument(fmt::format("write_npz: array '{}': {}", printable(name), problem));
  }
}

}  // namespace

void write_npz_stream(const std::map<std::string, AnyView>& arrays, NpzCompression compression,
                      const ByteSink& sink) {
  ArchiveWriter archive(sink, compression);
  for (const auto& [name, array] : arrays) archive.add(name, array);
  archive.finish();
}

}  // namespace io

std::map<std::string, AnyTensor> read_npz(const std::filesystem::path& path,
                                          std::int64_t max_inflated_bytes) {
  io::FileSource file(path);
  return io::read_archive(file, max_inflated_bytes);
}

std::map<std::string, AnyTensor> parse_npz(std::span<const std::byte> bytes,
                                           const std::string& name,
                                           std::int64_t max_inflated_bytes) {
  io::MemorySource memory(name, bytes);
  return io::read_archive(memory, max_inflated_bytes);
}

void write_npz(const std::filesystem::path& path, const std::map<std::string, AnyView>& arrays,
               NpzCompression compression) {
  io::check_names(arrays);
  io::write_file_atomically(
      path, [&](const io::ByteSink& sink) { io::write_npz_stream(arrays, compression, sink); });
}

}}  // namespace heed::v0
