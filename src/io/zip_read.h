// Reading zip archives that may be hostile.
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
  std::int64_t begin = 0;  // its first byte in the archive; the members lie before it
};

// Reads the records at the archive's end. Throws FormatError when they are damaged, contradict each
// other or describe a member that is refused: by its name, flags, method or impossible size.
Directory read_directory(ByteSource& archive);

// Reads every local header, sets data_offset and throws FormatError unless the headers say what the
// directory says and the members lie side by side, without gap or overlap, from the archive's first
// byte to the directory.
void locate_members(ByteSource& archive, Directory& directory);

// The bytes of one member, inflated where needed. They are known to be right only after finish().
class MemberStream : public ByteStream {
 public:
  MemberStream(ByteSource& archive, const Entry& entry);
  ~MemberStream() override;

  // Throws FormatError unless exactly the promised bytes came with the promised CRC.
  void finish();

 private:
  class Inflater;

  void read_next(std::span<std::byte> out) override;

  ByteSource& archive_;
  const Entry& entry_;
  std::unique_ptr<Inflater> inflater_;  // null when the member is stored
  std::uint32_t crc_ = 0;
};

// Takes the fields that are kSee64 from the zip64 extra field, where they stand in the given order.
// Returns whether there is such a field. Throws FormatError at `byte` when the extra fields are
// malformed or lack a value.
bool resolve_zip64(std::span<const std::byte> extra, std::span<std::uint64_t* const> fields,
                   const ByteSource& archive, std::int64_t byte);

}}}  // namespace heed::v0::io::zip
