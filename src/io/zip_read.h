// Reads zip archives, which may be hostile.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "io/byte_source.h"
#include "io/zip_format.h"

namespace heed { inline namespace v0 { namespace io::zip {

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

}}}  // namespace heed::v0::io::zip
