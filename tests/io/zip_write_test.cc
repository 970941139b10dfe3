#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "heed/core/error.h"
#include "io/zip.h"

namespace heed { namespace {

using io::zip::Entry;
using testing::HasSubstr;
using testing::ThrowsMessage;

// An archive too large to write in a test: zeros except for its directory and one local header.
class SparseArchive : public io::ByteSource {
 public:
  SparseArchive(std::span<const Entry> entries, std::int64_t directory_at)
      : SparseArchive(io::zip::format_local_header(entries[0]), entries[0].local_offset,
                      io::zip::format_directory(entries, directory_at), directory_at) {}

  void read(std::int64_t offset, std::span<std::byte> out) override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i] = at(offset + static_cast<std::int64_t>(i));
    }
  }

  std::vector<std::byte> directory;

 private:
  SparseArchive(std::vector<std::byte> local, std::int64_t local_at,
                std::vector<std::byte> directory_bytes, std::int64_t directory_at)
      : ByteSource("x.npz", directory_at + static_cast<std::int64_t>(directory_bytes.size())),
        directory(std::move(directory_bytes)),
        local_(std::move(local)),
        local_at_(local_at),
        directory_at_(directory_at) {}

  std::byte at(std::int64_t offset) const {
    if (offset >= directory_at_) return directory[static_cast<std::size_t>(offset - directory_at_)];
    const std::int64_t in_local = offset - local_at_;
    if (in_local < 0 || in_local >= static_cast<std::int64_t>(local_.size())) return std::byte{0};
    return local_[static_cast<std::size_t>(in_local)];
  }

  std::vector<std::byte> local_;
  std::int64_t local_at_;
  std::int64_t directory_at_;
};

Entry stored(const std::string& name, std::int64_t size, std::int64_t offset) {
  Entry entry;
  entry.name = name;
  entry.size = size;
  entry.stored_size = size;
  entry.local_offset = offset;
  return entry;
}

constexpr std::int64_t kFiveGiB = std::int64_t{5} << 30;

TEST(ZipWrite, WritesSizesAndOffsetsBeyond32Bits) {
  const std::vector<Entry> entries{stored("a.npy", kFiveGiB, 0), stored("b.npy", 7, kFiveGiB + 55),
                                   stored("c.npy", kFiveGiB, kFiveGiB + 97)};
  SparseArchive archive(entries, 2 * kFiveGiB + 200);
  const auto directory = io::zip::read_directory(archive);
  ASSERT_EQ(directory.entries.size(), 3U);
  EXPECT_EQ(directory.begin, 2 * kFiveGiB + 200);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    EXPECT_EQ(directory.entries[i].name, entries[i].name);
    EXPECT_EQ(directory.entries[i].size, entries[i].size);
    EXPECT_EQ(directory.entries[i].stored_size, entries[i].stored_size);
    EXPECT_EQ(directory.entries[i].local_offset, entries[i].local_offset);
  }
}

TEST(ZipWrite, LocalHeadersHoldSizesBeyond32Bits) {
  const std::vector<Entry> entries{stored("a.npy", kFiveGiB, 0)};
  const auto header = static_cast<std::int64_t>(io::zip::format_local_header(entries[0]).size());
  SparseArchive archive(entries, header + kFiveGiB);
  auto directory = io::zip::read_directory(archive);
  io::zip::locate_members(archive, directory);
  EXPECT_EQ(directory.entries[0].data_offset, header);
}

TEST(ZipWrite, TakesTheZip64FormFromTheFirstSizeThatNeedsIt) {
  const Entry largest_narrow = stored("a.npy", 0xfffffffe, 0);
  const Entry smallest_wide = stored("a.npy", 0xffffffff, 0);
  EXPECT_EQ(io::zip::format_local_header(largest_narrow).size(), 35U);
  EXPECT_EQ(io::zip::format_local_header(smallest_wide).size(), 35U + 20U);
}

TEST(ZipWrite, CountsBeyond16Bits) {
  std::vector<Entry> entries;
  entries.reserve(0xffff);
  for (int i = 0; i < 0xffff; ++i) entries.push_back(stored(std::to_string(i) + ".npy", 0, 0));
  SparseArchive archive(entries, 100);
  EXPECT_EQ(io::zip::read_directory(archive).entries.size(), 0xffffU);
}

TEST(ZipWrite, EndRecordsMustAgree) {
  const std::vector<Entry> entries{stored("a.npy", kFiveGiB, 0)};
  SparseArchive archive(entries, kFiveGiB + 100);
  const std::size_t end = archive.directory.size() - 22;
  archive.directory[end + 8] = archive.directory[end + 10] = std::byte{2};
  EXPECT_THAT([&] { io::zip::read_directory(archive); },
              ThrowsMessage<FormatError>(HasSubstr("contradicts the zip64 end record")));
}

TEST(ZipWrite, Zip64ValuesMustFitToo) {
  SparseArchive archive(std::vector<Entry>{stored("a.npy", INT64_MAX, 0)}, kFiveGiB);
  EXPECT_THAT([&] { io::zip::read_directory(archive); },
              ThrowsMessage<FormatError>(HasSubstr("do not lie before the central directory")));
}

}  // namespace
}  // namespace heed
