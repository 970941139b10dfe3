#include <algorithm>
#include <initializer_list>

#include "io/little_endian.h"
#include "io/zip.h"

namespace heed { inline namespace v0 { namespace io::zip {

namespace {

constexpr std::uint16_t kVersion = 20;    // the version a reader needs for deflate
constexpr std::uint16_t kVersion64 = 45;  // the version a reader needs for zip64
constexpr std::uint16_t kMidnight = 0;
constexpr std::uint16_t kFirstDay = 1U << 5U | 1U;  // 1980-01-01, the earliest date of the format
constexpr std::uint16_t kUnix = 3U << 8U;
constexpr std::uint32_t kOwnerReadsAndWrites = 0100644U << 16U;

bool needs_zip64(std::int64_t value) { return value >= std::int64_t{kSee64}; }

std::uint32_t narrow(std::int64_t value) {
  return needs_zip64(value) ? kSee64 : static_cast<std::uint32_t>(value);
}

std::uint16_t narrow_count(std::size_t count) {
  return count >= kSee64Short ? kSee64Short : static_cast<std::uint16_t>(count);
}

// The zip64 extra field of these values; empty if there are none.
std::vector<std::byte> zip64_extra(std::initializer_list<std::int64_t> values) {
  FieldWriter extra;
  if (values.size() == 0) return extra.take();
  extra.add(kZip64Extra).add(static_cast<std::uint16_t>(8 * values.size()));
  for (const std::int64_t value : values) extra.add(static_cast<std::uint64_t>(value));
  return extra.take();
}

std::span<const std::byte> name_bytes(const Entry& entry) {
  return std::as_bytes(std::span(entry.name));
}

// Adds the fields that both headers share, from the flags to the length of the extra fields.
void add_common(FieldWriter& fields, const Entry& entry, bool sizes_in_extra,
                std::size_t extra_size) {
  fields.add(entry.flags)
      .add(static_cast<std::uint16_t>(entry.method))
      .add(kMidnight)
      .add(kFirstDay)
      .add(entry.crc)
      .add(sizes_in_extra ? kSee64 : narrow(entry.stored_size))
      .add(sizes_in_extra ? kSee64 : narrow(entry.size))
      .add(static_cast<std::uint16_t>(entry.name.size()))
      .add(static_cast<std::uint16_t>(extra_size));
}

// True if either size exceeds 32 bits. Local headers demand both sizes in the extra field then.
bool has_wide_size(const Entry& entry) {
  return needs_zip64(entry.size) || needs_zip64(entry.stored_size);
}

void add_central_record(FieldWriter& fields, const Entry& entry) {
  const bool wide_size = has_wide_size(entry);
  const bool wide_offset = needs_zip64(entry.local_offset);
  std::vector<std::byte> extra;
  if (wide_size && wide_offset) {
    extra = zip64_extra({entry.size, entry.stored_size, entry.local_offset});
  } else if (wide_size) {
    extra = zip64_extra({entry.size, entry.stored_size});
  } else if (wide_offset) {
    extra = zip64_extra({entry.local_offset});
  }
  const std::uint16_t version = extra.empty() ? kVersion : kVersion64;
  fields.add(kCentralSignature).add(static_cast<std::uint16_t>(kUnix | version)).add(version);
  add_common(fields, entry, wide_size, extra.size());
  fields
      .add(std::uint16_t{0})  // comment
      .add(std::uint16_t{0})  // disk
      .add(std::uint16_t{0})  // internal attributes
      .add(kOwnerReadsAndWrites)
      .add(narrow(entry.local_offset))
      .add_bytes(name_bytes(entry))
      .add_bytes(extra);
}

void add_end64(FieldWriter& fields, std::size_t count, std::int64_t size, std::int64_t offset) {
  fields.add(kEnd64Signature)
      .add(static_cast<std::uint64_t>(kEnd64Size - 12))
      .add(static_cast<std::uint16_t>(kUnix | kVersion64))
      .add(kVersion64)
      .add(std::uint32_t{0})  // disk
      .add(std::uint32_t{0})  // disk of the directory
      .add(std::uint64_t{count})
      .add(std::uint64_t{count})
      .add(static_cast<std::uint64_t>(size))
      .add(static_cast<std::uint64_t>(offset));
  fields.add(kEnd64LocatorSignature)
      .add(std::uint32_t{0})  // disk
      .add(static_cast<std::uint64_t>(offset + size))
      .add(std::uint32_t{1});  // disks
}

}  // namespace

std::vector<std::byte> format_local_header(const Entry& entry) {
  const bool wide_size = has_wide_size(entry);
  const auto extra =
      wide_size ? zip64_extra({entry.size, entry.stored_size}) : std::vector<std::byte>{};
  FieldWriter fields;
  fields.add(kLocalSignature).add(wide_size ? kVersion64 : kVersion);
  add_common(fields, entry, wide_size, extra.size());
  fields.add_bytes(name_bytes(entry)).add_bytes(extra);
  return fields.take();
}

std::vector<std::byte> format_directory(std::span<const Entry> entries, std::int64_t offset) {
  FieldWriter fields;
  for (const Entry& entry : entries) add_central_record(fields, entry);
  const auto size = static_cast<std::int64_t>(fields.size());
  if (entries.size() >= kSee64Short || needs_zip64(size) || needs_zip64(offset)) {
    add_end64(fields, entries.size(), size, offset);
  }
  fields.add(kEndSignature)
      .add(std::uint16_t{0})  // disk
      .add(std::uint16_t{0})  // disk of the directory
      .add(narrow_count(entries.size()))
      .add(narrow_count(entries.size()))
      .add(narrow(size))
      .add(narrow(offset))
      .add(std::uint16_t{0});  // comment
  return fields.take();
}

}}}  // namespace heed::v0::io::zip
