// The archives that read_npz refuses, and its messages: valid archives with one changed field.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "heed/core/error.h"
#include "heed/io/npz.h"
#include "io/io_test_util.h"
#include "io/zip.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

// The offsets of the fields in the records.
constexpr std::size_t kLocalFlags = 6;
constexpr std::size_t kLocalMethod = 8;
constexpr std::size_t kLocalCrc = 14;
constexpr std::size_t kLocalStoredSize = 18;
constexpr std::size_t kLocalNameSize = 26;
constexpr std::size_t kLocalName = 30;
constexpr std::size_t kFlags = 8;
constexpr std::size_t kMethod = 10;
constexpr std::size_t kCrc = 16;
constexpr std::size_t kStoredSize = 20;
constexpr std::size_t kSize = 24;
constexpr std::size_t kExtraSize = 30;
constexpr std::size_t kDisk = 34;
constexpr std::size_t kOffset = 42;
constexpr std::size_t kName = 46;

// An archive of arrays "a" and "b" whose bytes can be changed.
class ZipRead : public IoTest {
 protected:
  explicit ZipRead(NpzCompression compression = NpzCompression::kStored) {
    const Tensor<float> tensor({2}, {1, 2});
    write_npz(path("good.npz"), {{"a", tensor}, {"b", tensor}}, compression);
    bytes_ = read_text(path("good.npz"));
    end_ = bytes_.size() - 22;
    directory_ = get(end_ + 16);
    second_ = get(directory_ + kName + 5 + kOffset);
  }

  // Returns a field of four bytes.
  std::size_t get(std::size_t at) const {
    std::size_t value = 0;
    for (std::size_t i = 4; i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(bytes_[at + i]);
    return value;
  }
  void set(std::size_t at, std::size_t value, std::size_t size = 4) {
    for (std::size_t i = 0; i < size; ++i) bytes_[at + i] = static_cast<char>(value >> 8 * i);
  }
  void set_name(const std::string& name) {
    bytes_.replace(kLocalName, name.size(), name);
    bytes_.replace(directory_ + kName, name.size(), name);
  }

  void expect_refused(std::size_t byte, const std::string& problem) const {
    EXPECT_THAT(
        [&] { parse_npz(bytes_of(bytes_), "x.npz"); },
        ThrowsMessage<FormatError>(
            AllOf(HasSubstr("x.npz: at byte " + std::to_string(byte) + ":"), HasSubstr(problem))));
  }

  std::string bytes_;
  std::size_t end_;        // the end record, after the members and the directory
  std::size_t directory_;  // the central directory, whose first record is "a.npy"
  std::size_t second_;     // the local header of "b.npy"
};

class ZipReadDeflated : public ZipRead {
 protected:
  ZipReadDeflated() : ZipRead(NpzCompression::kDeflated) {}
};

TEST_F(ZipRead, AcceptsTheArchiveThatTheOthersAreMadeFrom) {
  EXPECT_EQ(parse_npz(bytes_of(bytes_), "x.npz").size(), 2U);
}

TEST_F(ZipRead, RefusesEveryTruncation) {
  for (std::size_t size = 0; size < bytes_.size(); ++size) {
    EXPECT_THROW(parse_npz(bytes_of(bytes_).first(size), "x.npz"), FormatError) << size;
  }
}

TEST_F(ZipRead, RefusesTrailingAndLeadingBytes) {
  bytes_ += "x";
  expect_refused(end_ + 1, "trailing bytes");
  bytes_ = "x" + bytes_.substr(0, bytes_.size() - 1);
  expect_refused(end_ + 1, "does not end at the end record");
}

TEST_F(ZipRead, RefusesBadEndRecords) {
  set(end_ + 20, 1, 2);
  expect_refused(end_, "comment");
  set(end_ + 20, 0, 2);
  set(end_ + 4, 1, 2);
  expect_refused(end_, "several parts");
  set(end_ + 4, 0, 2);
  set(end_ + 8, 0x00010001);
  expect_refused(directory_ + 51, "left over");
  set(end_ + 8, 0x00030003);
  expect_refused(end_, "truncated");
}

TEST_F(ZipRead, RefusesNames) {
  set_name("/.npy");
  expect_refused(directory_, "member '/.npy': the name is an absolute path");
  set_name("../ab");
  expect_refused(directory_, "member '../ab': the name has a part '..'");
  set_name("a\\npy");
  expect_refused(directory_, "backslash");
  set_name("C:npy");
  expect_refused(directory_, "absolute");
  set_name(std::string("a\0npy", 5));
  expect_refused(directory_, "member 'a?npy': the name is not UTF-8");
  set_name("b.npy");
  expect_refused(directory_ + 51, "member 'b.npy': another member has the same name");
  set_name("a.txt");
  expect_refused(0, "member 'a.txt' is not an .npy file");
  set_name("\xc3\xa4.np");
  set(directory_ + kFlags, 0, 2);
  expect_refused(directory_, "not ASCII and not marked as UTF-8");
}

TEST_F(ZipRead, RefusesFlagsAndMethods) {
  set(directory_ + kFlags, 1, 2);
  expect_refused(directory_, "encrypted members are not supported");
  set(directory_ + kFlags, 1 << 13, 2);
  expect_refused(directory_, "flags 0x2000 are not supported");
  set(directory_ + kFlags, 1 << 11, 2);
  set(directory_ + kDisk, 1, 2);
  expect_refused(directory_, "several parts");
  set(directory_ + kDisk, 0, 2);
  set(directory_ + kMethod, 12, 2);
  expect_refused(directory_, "compression method 12, expected 0 (stored) or 8 (deflated)");
}

TEST_F(ZipRead, RefusesLocalHeadersThatSaySomethingElse) {
  const auto expect_mismatch = [this](std::size_t at, const std::string& field) {
    const char original = bytes_[at];
    bytes_[at] = static_cast<char>(original ^ 2);
    expect_refused(0, "the " + field + " in its local header is not that in the central directory");
    bytes_[at] = original;
  };
  expect_mismatch(kLocalFlags, "set of flags");
  expect_mismatch(kLocalMethod, "method");
  expect_mismatch(kLocalCrc, "CRC");
  expect_mismatch(kLocalStoredSize, "compressed size");
  expect_mismatch(kLocalStoredSize + 4, "size");
  expect_mismatch(kLocalName, "name");
  bytes_[0] = 'Q';
  expect_refused(0, "no local header");
  bytes_[0] = 'P';
  set(kLocalNameSize, 0xffff, 2);
  expect_refused(0, "the local header is truncated");
}

TEST_F(ZipRead, RefusesGapsAndOverlaps) {
  const std::size_t second_offset = directory_ + kName + 5 + kOffset;
  set(second_offset, 0);
  expect_refused(0, "overlaps the member before it");
  set(second_offset, second_ - 1);
  expect_refused(second_ - 1, "overlaps the member before it");
  set(second_offset, second_ + 1);
  expect_refused(second_ + 1, "bytes before it belong to no member");
  set(second_offset, directory_ + 1);
  expect_refused(directory_ + 51, "do not lie before the central directory");
}

TEST_F(ZipRead, RefusesMembersThatTheDirectoryOmits) {
  const std::size_t record_size = kName + 5;
  bytes_.erase(directory_ + record_size, record_size);
  set(end_ - record_size + 8, 0x00010001);
  set(end_ - record_size + 12, record_size);
  expect_refused(second_, std::to_string(directory_ - second_) + " bytes belong to no member");
}

TEST_F(ZipRead, RefusesSizes) {
  set(directory_ + kStoredSize, 0x7fffffff);
  expect_refused(directory_, "2147483647 bytes from byte 0 do not lie before");
  set(directory_ + kStoredSize, 135);
  expect_refused(directory_, "stored in 135 bytes but 136 bytes long");
  set(directory_ + kSize, 0xffffffff);
  set(directory_ + kExtraSize, 3, 2);
  expect_refused(directory_, "malformed extra fields");
}

TEST_F(ZipRead, ChecksTheCrc) {
  bytes_[second_ - 1] ^= 1;
  expect_refused(0, "member 'a.npy': CRC ");
  set(kLocalCrc, get(kLocalCrc) ^ 1);
  set(directory_ + kCrc, get(kLocalCrc));
  bytes_[second_ - 1] ^= 1;
  expect_refused(0, "member 'a.npy': CRC ");
}

TEST_F(ZipRead, NamesTheMemberWhoseArrayIsWrong) {
  bytes_[kLocalName + 5] = 'x';
  EXPECT_THAT([&] { parse_npz(bytes_of(bytes_), "x.npz"); },
              ThrowsMessage<FormatError>(HasSubstr("x.npz/a.npy: at byte 0: not a .npy file")));
}

TEST_F(ZipReadDeflated, RefusesSizesThatDeflateCannotReach) {
  set(directory_ + kSize, 0x7fffffff);
  expect_refused(directory_, "deflated bytes cannot inflate to 2147483647");
}

TEST_F(ZipReadDeflated, RefusesDamagedData) {
  const std::size_t data = kLocalName + 5;
  bytes_[data] = static_cast<char>(bytes_[data] | 6);  // an invalid block type
  expect_refused(0, "member 'a.npy': its deflated data is damaged");
}

// The array has the declared length, but the deflated data has another.
TEST_F(ZipReadDeflated, RefusesMembersThatInflateToAnotherSize) {
  const std::size_t length = get(kLocalStoredSize + 4);
  const auto declare = [&](std::size_t size) {
    set(kLocalStoredSize + 4, size);
    set(directory_ + kSize, size);
  };
  declare(length + 1);
  EXPECT_THAT([&] { parse_npz(bytes_of(bytes_), "x.npz"); },
              ThrowsMessage<FormatError>(HasSubstr("1 trailing bytes")));
  declare(length - 1);
  EXPECT_THAT([&] { parse_npz(bytes_of(bytes_), "x.npz"); },
              ThrowsMessage<FormatError>(HasSubstr("truncated")));
}

TEST_F(ZipReadDeflated, MemberStreamsEndWhereTheyDeclare) {
  io::MemorySource archive("x.npz", bytes_of(bytes_));
  io::zip::Directory directory = io::zip::read_directory(archive);
  io::zip::locate_members(archive, directory);
  io::zip::Entry entry = directory.entries[0];
  const auto drain = [&] {
    io::zip::MemberStream stream(archive, entry);
    std::string content(static_cast<std::size_t>(entry.size), '\0');
    stream.read(std::as_writable_bytes(std::span(content)));
    stream.finish();
  };
  EXPECT_NO_THROW(drain());
  ++entry.size;
  EXPECT_THAT(drain, ThrowsMessage<FormatError>(HasSubstr("fewer bytes than it declares")));
  entry.size -= 2;
  EXPECT_THAT(drain, ThrowsMessage<FormatError>(HasSubstr("more bytes than it declares")));
  ++entry.size;
  ++entry.stored_size;
  EXPECT_THAT(drain, ThrowsMessage<FormatError>(HasSubstr("bytes after its deflated data")));
  entry.stored_size -= 2;
  EXPECT_THAT(drain, ThrowsMessage<FormatError>(HasSubstr("does not end")));
}

TEST(ZipReadStreamed, ChecksDataDescriptors) {
  std::string bytes = read_text(fixture("streamed.npz"));
  const std::size_t at = bytes.find("PK\7\x08");
  ASSERT_NE(at, std::string::npos);
  bytes[at + 8] ^= 1;
  EXPECT_THAT([&] { parse_npz(bytes_of(bytes), "x.npz"); },
              ThrowsMessage<FormatError>(HasSubstr("data descriptor is missing or contradicts")));
}

}  // namespace
}  // namespace heed
