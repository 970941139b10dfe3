#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <set>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/little_endian.h"
#include "io/zip.h"

namespace heed { inline namespace v0 { namespace io::zip {

namespace {

// True if `name` is UTF-8 without control characters, which could control a terminal.
bool is_plain_utf8(std::string_view name) {
  const auto* next = reinterpret_cast<const utf8proc_uint8_t*>(name.data());
  auto remaining = static_cast<utf8proc_ssize_t>(name.size());
  while (remaining > 0) {
    utf8proc_int32_t codepoint = 0;
    const utf8proc_ssize_t used = utf8proc_iterate(next, remaining, &codepoint);
    if (used <= 0 || utf8proc_category(codepoint) == UTF8PROC_CATEGORY_CC) return false;
    next += used;
    remaining -= used;
  }
  return true;
}

bool has_part(std::string_view name, std::string_view wanted) {
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    if (name.substr(begin, end - begin) == wanted) return true;
    begin = end + 1;
  }
  return false;
}

}  // namespace

std::string_view name_problem(std::string_view name) {
  constexpr std::size_t kLongest = std::numeric_limits<std::uint16_t>::max();
  if (name.empty()) return "the name is empty";
  if (name.size() > kLongest) return "the name is too long";
  if (!is_plain_utf8(name)) return "the name is not UTF-8 without control characters";
  const bool has_drive = name.size() > 1 && name[1] == ':';
  if (name.front() == '/' || has_drive) return "the name is an absolute path";
  if (name.find('\\') != std::string_view::npos) return "the name has a backslash";
  if (has_part(name, "..")) return "the name has a part '..'";
  if (has_part(name, "") || has_part(name, ".")) return "the name has a part that is empty or '.'";
  return "";
}

namespace {

// The place of the central directory, from the end records.
struct End {
  std::uint64_t count = 0;
  std::uint64_t size = 0;
  std::uint64_t offset = 0;
  std::int64_t begin = 0;  // of the first end record; the directory must end here
};

std::vector<std::byte> read_bytes(ByteSource& archive, std::int64_t offset, std::int64_t size) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  archive.read(offset, bytes);
  return bytes;
}

// Reads the end record in its 32-bit form. An archive comment would follow it; writers of arrays
// write none, and then the record has exactly one possible place.
End read_end32(ByteSource& archive) {
  const std::int64_t begin = archive.size() - kEndSize;
  if (begin < 0) {
    throw FormatError(archive.name(), archive.size(), "truncated: a zip archive has 22 bytes");
  }
  const auto bytes = read_bytes(archive, begin, kEndSize);
  FieldReader fields(bytes);
  if (fields.next<std::uint32_t>() != kEndSignature) {
    throw FormatError(archive.name(), begin,
                      "not a zip archive, or truncated, or with trailing bytes: the end record is "
                      "not at the end");
  }
  const auto disk = fields.next<std::uint16_t>();
  const auto directory_disk = fields.next<std::uint16_t>();
  const auto count_here = fields.next<std::uint16_t>();
  End end;
  end.count = fields.next<std::uint16_t>();
  end.size = fields.next<std::uint32_t>();
  end.offset = fields.next<std::uint32_t>();
  end.begin = begin;
  if (disk != 0 || directory_disk != 0 || count_here != end.count) {
    throw FormatError(archive.name(), begin, "archives in several parts are not supported");
  }
  if (fields.next<std::uint16_t>() != 0) {
    throw FormatError(archive.name(), begin, "the end record promises a comment that is not there");
  }
  return end;
}

bool agrees(std::uint64_t narrow, std::uint64_t see64, std::uint64_t wide) {
  return narrow == see64 || narrow == wide;
}

// Returns the 64-bit end record if the archive has one, otherwise `end`.
End read_end64(ByteSource& archive, const End& end) {
  const std::int64_t locator_at = end.begin - kEnd64LocatorSize;
  const std::int64_t begin = locator_at - kEnd64Size;
  if (begin < 0) return end;
  const auto bytes = read_bytes(archive, begin, kEnd64Size + kEnd64LocatorSize);
  FieldReader locator{std::span(bytes).last(kEnd64LocatorSize)};
  if (locator.next<std::uint32_t>() != kEnd64LocatorSignature) return end;
  const auto locator_disk = locator.next<std::uint32_t>();
  const auto located = locator.next<std::uint64_t>();
  const auto disks = locator.next<std::uint32_t>();

  FieldReader fields(bytes);
  const bool is_here = fields.next<std::uint32_t>() == kEnd64Signature &&
                       located == static_cast<std::uint64_t>(begin);
  const auto record_size = fields.next<std::uint64_t>();
  fields.skip(4);  // versions
  const auto disk = fields.next<std::uint32_t>();
  const auto directory_disk = fields.next<std::uint32_t>();
  const auto count_here = fields.next<std::uint64_t>();
  End wide;
  wide.count = fields.next<std::uint64_t>();
  wide.size = fields.next<std::uint64_t>();
  wide.offset = fields.next<std::uint64_t>();
  wide.begin = begin;
  if (!is_here || record_size != kEnd64Size - 12) {
    throw FormatError(archive.name(), begin, "the zip64 end record is not where it should be");
  }
  if (locator_disk != 0 || disks > 1 || disk != 0 || directory_disk != 0 ||
      count_here != wide.count) {
    throw FormatError(archive.name(), begin, "archives in several parts are not supported");
  }
  if (!agrees(end.count, kSee64Short, wide.count) || !agrees(end.size, kSee64, wide.size) ||
      !agrees(end.offset, kSee64, wide.offset)) {
    throw FormatError(archive.name(), end.begin, "the end record contradicts the zip64 end record");
  }
  return wide;
}

// Reads the records of the central directory in sequence.
class DirectoryReader {
 public:
  DirectoryReader(ByteSource& archive, std::int64_t begin, std::span<const std::byte> bytes)
      : archive_(archive), begin_(begin), size_(bytes.size()), fields_(bytes) {}

  std::vector<Entry> read(std::uint64_t count) {
    std::vector<Entry> entries;
    for (std::uint64_t i = 0; i < count; ++i) {
      entries.push_back(read_entry());
      if (!names_.insert(entries.back().name).second) fail("another member has the same name");
    }
    record_ = position();
    name_.clear();
    if (fields_.remaining() != 0) {
      fail(fmt::format("{} bytes are left over in the central directory", fields_.remaining()));
    }
    return entries;
  }

 private:
  Entry read_entry() {
    record_ = position();
    name_.clear();
    if (fields_.remaining() < kCentralSize) fail("the central directory is truncated");
    if (fields_.next<std::uint32_t>() != kCentralSignature) fail("expected a directory record");
    fields_.skip(4);  // versions
    Entry entry;
    entry.flags = fields_.next<std::uint16_t>();
    const auto method = fields_.next<std::uint16_t>();
    fields_.skip(4);  // time and date
    entry.crc = fields_.next<std::uint32_t>();
    std::uint64_t stored_size = fields_.next<std::uint32_t>();
    std::uint64_t size = fields_.next<std::uint32_t>();
    const auto name_size = fields_.next<std::uint16_t>();
    const auto extra_size = fields_.next<std::uint16_t>();
    const auto comment_size = fields_.next<std::uint16_t>();
    const auto disk = fields_.next<std::uint16_t>();
    fields_.skip(6);  // attributes
    std::uint64_t offset = fields_.next<std::uint32_t>();
    const std::size_t rest = std::size_t{name_size} + extra_size + comment_size;
    if (fields_.remaining() < rest) fail("the central directory is truncated");
    const auto name = fields_.next_bytes(name_size);
    entry.name.assign(reinterpret_cast<const char*>(name.data()), name.size());
    name_ = entry.name;
    const std::array wide_fields{&size, &stored_size, &offset};
    resolve_zip64(fields_.next_bytes(extra_size), wide_fields, archive_, record_);
    fields_.skip(comment_size);

    check_name(entry);
    check_flags(entry.flags, disk);
    entry.method = checked_method(method);
    check_sizes(entry.method, stored_size, size, offset);
    entry.stored_size = static_cast<std::int64_t>(stored_size);
    entry.size = static_cast<std::int64_t>(size);
    entry.local_offset = static_cast<std::int64_t>(offset);
    return entry;
  }

  void check_name(const Entry& entry) const {
    const std::string_view problem = name_problem(entry.name);
    if (!problem.empty()) fail(problem);
    const bool is_ascii = std::all_of(entry.name.begin(), entry.name.end(),
                                      [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    if (!is_ascii && (entry.flags & kUtf8Flag) == 0) {
      fail("the name is not ASCII and not marked as UTF-8");
    }
  }

  void check_flags(std::uint16_t flags, std::uint16_t disk) const {
    if ((flags & kEncryptedFlag) != 0) fail("encrypted members are not supported");
    if ((flags & ~kKnownFlags) != 0) fail(fmt::format("flags {:#06x} are not supported", flags));
    if (disk != 0) fail("archives in several parts are not supported");
  }

  Method checked_method(std::uint16_t method) const {
    if (method != static_cast<std::uint16_t>(Method::kStored) &&
        method != static_cast<std::uint16_t>(Method::kDeflated)) {
      fail(fmt::format("compression method {}, expected 0 (stored) or 8 (deflated)", method));
    }
    return static_cast<Method>(method);
  }

  void check_sizes(Method method, std::uint64_t stored_size, std::uint64_t size,
                   std::uint64_t offset) const {
    const auto available = static_cast<std::uint64_t>(begin_);
    if (offset > available || stored_size > available - offset) {
      fail(fmt::format("{} bytes from byte {} do not lie before the central directory at byte {}",
                       stored_size, offset, begin_));
    }
    if (method == Method::kStored && size != stored_size) {
      fail(fmt::format("stored in {} bytes but {} bytes long", stored_size, size));
    }
    // Two bits of deflated data copy at most 258 bytes, so one byte becomes at most 1032.
    constexpr std::uint64_t kMaxRatio = 1032;
    if (size / kMaxRatio > stored_size) {
      fail(fmt::format("{} deflated bytes cannot inflate to {}", stored_size, size));
    }
  }

  std::int64_t position() const {
    return begin_ + static_cast<std::int64_t>(size_ - fields_.remaining());
  }

  [[noreturn]] void fail(std::string_view problem) const {
    if (name_.empty()) throw FormatError(archive_.name(), record_, std::string(problem));
    throw FormatError(archive_.name(), record_,
                      fmt::format("member '{}': {}", printable(name_), problem));
  }

  ByteSource& archive_;
  std::int64_t begin_;
  std::size_t size_;
  FieldReader fields_;
  std::set<std::string> names_;
  std::int64_t record_ = 0;  // the record being read, for errors
  std::string name_;         // the member of the record, if known
};

}  // namespace

bool resolve_zip64(std::span<const std::byte> extra, std::span<std::uint64_t* const> fields,
                   const ByteSource& archive, std::int64_t byte) {
  bool found = false;
  FieldReader reader(extra);
  while (reader.remaining() != 0) {
    if (reader.remaining() < 4) throw FormatError(archive.name(), byte, "malformed extra fields");
    const auto id = reader.next<std::uint16_t>();
    const auto size = reader.next<std::uint16_t>();
    if (reader.remaining() < size) {
      throw FormatError(archive.name(), byte, "malformed extra fields");
    }
    FieldReader values(reader.next_bytes(size));
    if (id != kZip64Extra) continue;
    if (found) throw FormatError(archive.name(), byte, "two zip64 extra fields");
    found = true;
    for (std::uint64_t* const field : fields) {
      if (*field != kSee64) continue;
      if (values.remaining() < 8) {
        throw FormatError(archive.name(), byte, "the zip64 extra field is too short");
      }
      *field = values.next<std::uint64_t>();
    }
  }
  return found;
}

Directory read_directory(ByteSource& archive) {
  const End end = read_end64(archive, read_end32(archive));
  const auto limit = static_cast<std::uint64_t>(end.begin);
  if (end.offset > limit || end.size != limit - end.offset) {
    throw FormatError(archive.name(), end.begin,
                      fmt::format("the central directory of {} bytes from byte {} does not end at "
                                  "the end record at byte {}",
                                  end.size, end.offset, end.begin));
  }
  const auto begin = static_cast<std::int64_t>(end.offset);
  const auto bytes = read_bytes(archive, begin, static_cast<std::int64_t>(end.size));
  return {DirectoryReader(archive, begin, bytes).read(end.count), begin};
}

}}}  // namespace heed::v0::io::zip
