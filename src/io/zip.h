// Zip archives, as far as .npz files need them: their records, which are written as bytes, and the
// reading of archives, which may be hostile. Source:
// https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, sections 4.3 to 4.5
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/byte_source.h"

namespace heed { inline namespace v0 { namespace io::zip {

inline constexpr std::uint32_t kLocalSignature = 0x04034b50;
inline constexpr std::uint32_t kDescriptorSignature = 0x08074b50;
inline constexpr std::uint32_t kCentralSignature = 0x02014b50;
inline constexpr std::uint32_t kEndSignature = 0x06054b50;
inline constexpr std::uint32_t kEnd64Signature = 0x06064b50;
inline constexpr std::uint32_t kEnd64LocatorSignature = 0x07064b50;

// The bytes of the records without names, extra fields and comments.
inline constexpr std::int64_t kLocalSize = 30;
inline constexpr std::int64_t kCentralSize = 46;
inline constexpr std::int64_t kEndSize = 22;
inline constexpr std::int64_t kEnd64Size = 56;
inline constexpr std::int64_t kEnd64LocatorSize = 20;

// A field of 16 or 32 bits with this value refers to the zip64 record.
inline constexpr std::uint16_t kSee64Short = 0xffff;
inline constexpr std::uint32_t kSee64 = 0xffffffff;
inline constexpr std::uint16_t kZip64Extra = 0x0001;

inline constexpr std::uint16_t kEncryptedFlag = 1U << 0U;
inline constexpr std::uint16_t kDescriptorFlag = 1U << 3U;
inline constexpr std::uint16_t kUtf8Flag = 1U << 11U;
// Bits 1 and 2 give the compressor's effort.
inline constexpr std::uint16_t kKnownFlags = 3U << 1U | kDescriptorFlag | kUtf8Flag;

enum class Method : std::uint16_t { kStored = 0, kDeflated = 8 };

// A member, as described in the central directory.
struct Entry {
  std::string name;
  std::uint16_t flags = 0;
  Method method = Method::kStored;
  std::uint32_t crc = 0;
  std::int64_t stored_size = 0;   // bytes in the archive
  std::int64_t size = 0;          // bytes after inflating
  std::int64_t local_offset = 0;  // of the local header
  std::int64_t data_offset = 0;   // of the first stored byte
};

// The error in a member's name, or "" if there is none. The name must be a relative path in UTF-8
// with '/' between its parts that stays below the folder it would be unpacked in.
std::string_view name_problem(std::string_view name);

// The central directory.
struct Directory {
  std::vector<Entry> entries;
  std::int64_t begin = 0;  // its first byte in the archive; the members are before it
};

// Reads the records at the archive's end. Throws FormatError if they are damaged, contradict each
// other or describe a member that is refused: for its name, flags, method or impossible size.
Directory read_directory(ByteSource& archive);

// Reads every local header and sets data_offset. Throws FormatError unless the headers agree with
// the directory and the members follow each other, without gap or overlap, from the archive's first
// byte to the directory.
void locate_members(ByteSource& archive, Directory& directory);

// The bytes of one member, inflated where needed. They are verified only by finish().
class MemberStream : public ByteStream {
 public:
  MemberStream(ByteSource& archive, const Entry& entry);
  ~MemberStream() override;

  // Throws FormatError unless exactly the declared number of bytes came, with the declared CRC.
  void finish();

 private:
  class Inflater;

  void read_next(std::span<std::byte> out) override;

  ByteSource& archive_;
  const Entry& entry_;
  std::unique_ptr<Inflater> inflater_;  // null when the member is stored
  std::uint32_t crc_ = 0;
};

// Replaces the fields that are kSee64 by values of the zip64 extra field, in the given order.
// Returns true if this field exists. Throws FormatError at `byte` if the extra fields are malformed
// or lack a value.
bool resolve_zip64(std::span<const std::byte> extra, std::span<std::uint64_t* const> fields,
                   const ByteSource& archive, std::int64_t byte);

// The header before a member's stored bytes. Like the directory, it takes the zip64 form only if a
// number does not fit in 32 bits.
std::vector<std::byte> format_local_header(const Entry& entry);

// The records after the members: the central directory at byte `offset` and the end records.
std::vector<std::byte> format_directory(std::span<const Entry> entries, std::int64_t offset);

}}}  // namespace heed::v0::io::zip
