// What the library expects of every operating system.
#include "core/platform.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <set>
#include <string>
#include <thread>

#include "core/platform_files.h"
#include "io/io_test_util.h"

namespace heed::platform { namespace {

constexpr auto kAtOnce = PipesWithoutWriter::kDoNotWait;

TEST(Platform, ThreadsRunOnTheProcessorsThatWereChosen) {
  EXPECT_GE(num_processors(), 1);
  std::atomic<bool> is_over = false;
  std::thread thread([&] {
    while (!is_over) std::this_thread::yield();
  });
  ProcessorSet before{};
  if (get_processors(thread.native_handle(), before)) {
    ProcessorSet one{};
    for (std::size_t i = 0; i < before.size() && one == ProcessorSet{}; ++i) {
      one[i] = before[i] & (~before[i] + 1);
    }
    ProcessorSet found{};
    EXPECT_TRUE(set_processors(thread.native_handle(), one));
    EXPECT_TRUE(get_processors(thread.native_handle(), found));
    EXPECT_EQ(found, one);
  }
  is_over = true;
  thread.join();
}

TEST(Platform, SaysHowMuchMemoryThereIsRoomFor) {
  EXPECT_TRUE(has_room(std::size_t{1} << 20));
  EXPECT_FALSE(has_room(std::size_t{1} << 60));
}

TEST(Platform, DrawsBytesThatDiffer) {
  std::array<std::byte, 32> a{};
  std::array<std::byte, 32> b{};
  EXPECT_TRUE(draw_bytes(a) && draw_bytes(b));
  EXPECT_NE(a, b);
}

class PlatformFiles : public IoTest {};

TEST_F(PlatformFiles, AreReadAtAnyOffsetAndMapped) {
  write_text(path("a"),
             "a\r\n\x1a"
             "0123");
  const FileDescriptor file = open_to_read(path("a"), kAtOnce);
  ASSERT_GE(file.get(), 0);
  const auto status = status_of(file.get());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->kind, FileKind::kRegular);
  EXPECT_EQ(status->size, 8);
  EXPECT_TRUE(status->has_name && status->is_own);
  std::array<std::byte, 9> bytes{};
  EXPECT_EQ(read_some_at(file.get(), 6, bytes), 2);
  EXPECT_EQ(std::to_integer<char>(bytes[0]), '2');
  EXPECT_EQ(read_some_at(file.get(), 8, bytes), 0);
  const FileDescriptor other = open_to_read(path("a"), kAtOnce);
  EXPECT_EQ(read_some(other.get(), std::span(bytes).first(4)), 4) << "no byte ends a text";
  EXPECT_EQ(std::to_integer<char>(bytes[1]), '\r');
  const std::byte* const mapped = map_file(file.get(), 8);
  ASSERT_NE(mapped, nullptr);
  EXPECT_EQ(std::to_integer<char>(mapped[7]), '3');
  unmap_file({mapped, 8});
}

TEST_F(PlatformFiles, AreCreatedRenamedAndRemoved) {
  {
    const FileDescriptor file = create_for_owner(path("a"));
    ASSERT_GE(file.get(), 0);
    EXPECT_EQ(write_some(file.get(), bytes_of("new\n")), 4);
    EXPECT_TRUE(synchronize(file.get()) && synchronize_folder(path("")));
    EXPECT_LT(create_for_owner(path("a")).get(), 0);
    EXPECT_EQ(errno, EEXIST);
  }
  write_text(path("b"), "old");
  EXPECT_TRUE(add_name(path("b"), path("c")));
  EXPECT_TRUE(rename_file(path("a"), path("b")));
  EXPECT_EQ(read_text(path("b")), "new\n");
  EXPECT_EQ(read_text(path("c")), "old");
  EXPECT_FALSE(rename_file(path("a"), path("b")));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_TRUE(permissions_of(path("c")).has_value());
  EXPECT_TRUE(remove_file(path("c")));
  EXPECT_FALSE(permissions_of(path("c")).has_value());
  EXPECT_LT(open_to_read(path("c"), kAtOnce).get(), 0);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(PlatformFiles, AreLocked) {
  write_text(path("a"), "x");
  const FileDescriptor first = open_to_read(path("a"), kAtOnce);
  const FileDescriptor second = open_to_read(path("a"), kAtOnce);
  {
    const FileDescriptor third = open_to_read(path("a"), kAtOnce);
    EXPECT_TRUE(try_lock_shared(third.get()) && try_lock_shared(first.get()));
    EXPECT_FALSE(try_lock(second.get()));
    std::array<std::byte, 1> byte{};
    EXPECT_EQ(read_some(second.get(), byte), 1) << "a lock keeps nobody from reading";
  }
  EXPECT_FALSE(try_lock(second.get()));
}

TEST_F(PlatformFiles, AreFoundInFolders) {
  write_text(path("a"), "x");
  std::filesystem::create_directory(path("folder"));
  EXPECT_EQ(status_of(open_to_read(path("folder"), kAtOnce).get())->kind, FileKind::kFolder);
  EXPECT_FALSE(Folder(path("none")).is_open());
  Folder folder(path(""));
  ASSERT_TRUE(folder.is_open());
  EXPECT_EQ(folder.id(), Folder(path("")).id());
  EXPECT_NE(folder.id(), Folder(path("folder")).id());
  std::set<std::string> names;
  while (const char* const name = folder.next()) names.insert(name);
  EXPECT_THAT(names, testing::IsSupersetOf({"a", "folder"}));
  EXPECT_GE(folder.open("a").get(), 0);
  folder.remove("a");
  EXPECT_FALSE(std::filesystem::exists(path("a")));
}

}  // namespace
}  // namespace heed::platform
