#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <new>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/little_endian.h"
#include "io/zip.h"

namespace heed { inline namespace v0 { namespace io::zip {

namespace {

[[noreturn]] void fail(const ByteSource& archive, const Entry& entry, std::string_view problem) {
  throw FormatError(archive.name(), entry.local_offset,
                    fmt::format("member '{}': {}", printable(entry.name), problem));
}

void require_match(bool matches, const ByteSource& archive, const Entry& entry,
                   std::string_view field) {
  if (matches) return;
  fail(archive, entry,
       fmt::format("the {} in its local header is not that in the central directory", field));
}

struct LocalHeader {
  std::int64_t size = 0;  // of the header itself
  bool has_zip64 = false;
};

// Reads the local header of `entry` and compares it with the directory.
LocalHeader check_local_header(ByteSource& archive, const Entry& entry, std::int64_t limit) {
  std::array<std::byte, kLocalSize> fixed{};
  if (limit - entry.local_offset < kLocalSize)
    fail(archive, entry, "the local header is truncated");
  archive.read(entry.local_offset, fixed);
  FieldReader fields(fixed);
  if (fields.next<std::uint32_t>() != kLocalSignature) {
    fail(archive, entry, "there is no local header where the central directory says");
  }
  fields.skip(2);  // version
  const auto flags = fields.next<std::uint16_t>();
  const auto method = fields.next<std::uint16_t>();
  fields.skip(4);  // time and date
  const auto crc = fields.next<std::uint32_t>();
  std::uint64_t stored_size = fields.next<std::uint32_t>();
  std::uint64_t size = fields.next<std::uint32_t>();
  const auto name_size = fields.next<std::uint16_t>();
  const auto extra_size = fields.next<std::uint16_t>();

  const std::int64_t header_size = kLocalSize + name_size + extra_size;
  if (header_size > limit - entry.local_offset) {
    fail(archive, entry, "the local header is truncated");
  }
  std::vector<std::byte> rest(std::size_t{name_size} + extra_size);
  archive.read(entry.local_offset + kLocalSize, rest);
  const std::string_view name(reinterpret_cast<const char*>(rest.data()), name_size);
  const std::array wide_fields{&size, &stored_size};
  const bool has_zip64 =
      resolve_zip64(std::span(rest).subspan(name_size), wide_fields, archive, entry.local_offset);

  // A member with a data descriptor was written before its sizes and CRC were known.
  const bool is_streamed = (entry.flags & kDescriptorFlag) != 0;
  const auto same = [&](std::uint64_t local, std::uint64_t central) {
    return local == central || (is_streamed && local == 0);
  };
  require_match(name == entry.name, archive, entry, "name");
  require_match(flags == entry.flags, archive, entry, "set of flags");
  require_match(method == static_cast<std::uint16_t>(entry.method), archive, entry, "method");
  require_match(same(crc, entry.crc), archive, entry, "CRC");
  require_match(same(stored_size, static_cast<std::uint64_t>(entry.stored_size)), archive, entry,
                "compressed size");
  require_match(same(size, static_cast<std::uint64_t>(entry.size)), archive, entry, "size");
  return {header_size, has_zip64};
}

// The size of the data descriptor at `offset`, whose signature is optional.
std::int64_t check_descriptor(ByteSource& archive, const Entry& entry, std::int64_t offset,
                              std::int64_t limit, bool has_zip64) {
  std::array<std::byte, 24> bytes{};
  const std::int64_t available = std::min<std::int64_t>(limit - offset, bytes.size());
  archive.read(offset, std::span(bytes).first(static_cast<std::size_t>(available)));
  for (const std::int64_t signature_size : {4, 0}) {
    FieldReader fields(bytes);
    if (signature_size != 0 && fields.next<std::uint32_t>() != kDescriptorSignature) continue;
    const auto crc = fields.next<std::uint32_t>();
    const auto next_size = [&] {
      return has_zip64 ? fields.next<std::uint64_t>() : fields.next<std::uint32_t>();
    };
    const std::uint64_t stored_size = next_size();
    const std::uint64_t size = next_size();
    const auto used = static_cast<std::int64_t>(bytes.size() - fields.remaining());
    if (used <= available && crc == entry.crc &&
        stored_size == static_cast<std::uint64_t>(entry.stored_size) &&
        size == static_cast<std::uint64_t>(entry.size)) {
      return used;
    }
  }
  fail(archive, entry, "its data descriptor is missing or contradicts the central directory");
}

}  // namespace

void locate_members(ByteSource& archive, Directory& directory) {
  std::vector<Entry*> in_order;
  for (Entry& entry : directory.entries) in_order.push_back(&entry);
  std::sort(in_order.begin(), in_order.end(),
            [](const Entry* a, const Entry* b) { return a->local_offset < b->local_offset; });
  std::int64_t end = 0;
  for (Entry* const entry : in_order) {
    if (entry->local_offset < end) fail(archive, *entry, "overlaps the member before it");
    if (entry->local_offset > end) fail(archive, *entry, "bytes before it belong to no member");
    const LocalHeader header = check_local_header(archive, *entry, directory.begin);
    entry->data_offset = entry->local_offset + header.size;
    if (entry->stored_size > directory.begin - entry->data_offset) {
      fail(archive, *entry, "overlaps the central directory");
    }
    end = entry->data_offset + entry->stored_size;
    if ((entry->flags & kDescriptorFlag) != 0) {
      end += check_descriptor(archive, *entry, end, directory.begin, header.has_zip64);
    }
  }
  if (end != directory.begin) {
    throw FormatError(archive.name(), end,
                      fmt::format("{} bytes belong to no member", directory.begin - end));
  }
}

// zlib's inflate, fed from the archive.
class MemberStream::Inflater {
 public:
  Inflater(ByteSource& archive, const Entry& entry)
      : archive_(archive), entry_(entry), next_(entry.data_offset) {
    // Negative window bits: no zlib header, as zip has it.
    if (::inflateInit2(&zlib_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~Inflater() { ::inflateEnd(&zlib_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  void fill(std::span<std::byte> out) {
    while (!out.empty()) {
      const std::size_t count = inflate_some(out);
      if (count == 0) fail(archive_, entry_, "inflates to fewer bytes than it declares");
      out = out.subspan(count);
    }
  }

  // Checks that the whole input makes up the whole output.
  void finish() {
    std::array<std::byte, 1> more{};
    if (inflate_some(more) != 0) fail(archive_, entry_, "inflates to more bytes than it declares");
    if (zlib_.avail_in != 0 || next_ != input_end()) {
      fail(archive_, entry_, "has bytes after its deflated data");
    }
  }

 private:
  // Returns the number of bytes written to `out`; 0 at the end of the deflated data.
  std::size_t inflate_some(std::span<std::byte> out) {
    constexpr std::size_t kMaxOutput = 1 << 30;  // zlib counts in 32 bits
    out = out.first(std::min(out.size(), kMaxOutput));
    zlib_.next_out = reinterpret_cast<Bytef*>(out.data());
    zlib_.avail_out = static_cast<uInt>(out.size());
    while (!has_ended_ && zlib_.avail_out == out.size()) {
      if (zlib_.avail_in == 0) refill();
      const int status = ::inflate(&zlib_, Z_NO_FLUSH);
      if (status == Z_MEM_ERROR) throw std::bad_alloc();
      if (status == Z_BUF_ERROR) fail(archive_, entry_, "its deflated data does not end");
      has_ended_ = status == Z_STREAM_END;
      if (!has_ended_ && status != Z_OK) fail(archive_, entry_, "its deflated data is damaged");
    }
    return out.size() - zlib_.avail_out;
  }

  // Leaves the input empty at its end: zlib may still hold back output.
  void refill() {
    const auto count = static_cast<std::size_t>(
        std::min<std::int64_t>(input_end() - next_, static_cast<std::int64_t>(input_.size())));
    archive_.read(next_, std::span(input_).first(count));
    next_ += static_cast<std::int64_t>(count);
    zlib_.next_in = reinterpret_cast<Bytef*>(input_.data());
    zlib_.avail_in = static_cast<uInt>(count);
  }

  std::int64_t input_end() const { return entry_.data_offset + entry_.stored_size; }

  ByteSource& archive_;
  const Entry& entry_;
  std::int64_t next_;  // position in the archive of the next bytes to read
  z_stream zlib_{};
  bool has_ended_ = false;
  std::array<std::byte, 1 << 16> input_{};
};

MemberStream::MemberStream(ByteSource& archive, const Entry& entry)
    : ByteStream(fmt::format("{}/{}", archive.name(), entry.name), entry.size),
      archive_(archive),
      entry_(entry) {
  if (entry.method == Method::kDeflated) inflater_ = std::make_unique<Inflater>(archive, entry);
}

MemberStream::~MemberStream() = default;

void MemberStream::read_next(std::span<std::byte> out) {
  if (out.empty()) return;
  if (inflater_ == nullptr) {
    archive_.read(entry_.data_offset + position(), out);
  } else {
    inflater_->fill(out);
  }
  crc_ = static_cast<std::uint32_t>(
      ::crc32_z(crc_, reinterpret_cast<const Bytef*>(out.data()), out.size()));
}

void MemberStream::finish() {
  assert(remaining() == 0);
  if (inflater_ != nullptr) inflater_->finish();
  if (crc_ != entry_.crc) {
    fail(archive_, entry_, fmt::format("CRC {:08x}, expected {:08x}", crc_, entry_.crc));
  }
}

}}}  // namespace heed::v0::io::zip
