// Files on POSIX systems: links, permissions, locks, pipes, devices, and processes that are killed.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <variant>

#include "heed/core/error.h"
#include "heed/io/gguf.h"
#include "heed/io/npy.h"
#include "heed/io/safetensors.h"
#include "io/atomic_file.h"
#include "io/io_test_util.h"
#include "io/temporary_file.h"
#include "io/text_file.h"
#include "support/tensors.h"

namespace heed { namespace {

namespace fs = std::filesystem;
using io::AtomicFile;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::same_bits;

class PosixFiles : public IoTest {};

TEST_F(PosixFiles, KeepsPermissionsAndFollowsLinks) {
  write_text(path("a"), "old");
  fs::permissions(path("a"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink(path("a"), path("link"));
  AtomicFile file(path("link"));
  file.write(bytes_of("new"));
  file.commit();
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_text(path("a")), "new");
  EXPECT_EQ(fs::status(path("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

// Returns the mode of a file, including the umask.
unsigned permissions_of(const fs::path& path) {
  struct stat status {};
  EXPECT_EQ(::stat(path.c_str(), &status), 0);
  return status.st_mode & 0777U;
}

fs::path temporary_in(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".tmp") return entry.path();
  }
  return {};
}

TEST_F(PosixFiles, IsItsOwnersAloneUntilItIsRenamed) {
  const mode_t before = ::umask(0027);
  {
    AtomicFile file(path("a"));
    const fs::path temporary = temporary_in(path(""));
    EXPECT_EQ(permissions_of(temporary), 0600U);
    file.write(bytes_of("new"));
    EXPECT_EQ(permissions_of(temporary), 0600U);
    file.commit();
  }
  EXPECT_EQ(permissions_of(path("a")), 0640U);
  ::umask(before);
}

// A link at the temporary name of a file is never written through.
TEST_F(PosixFiles, NamesCannotBeForeseen) {
  fs::path first;
  {
    const AtomicFile file(path("a"));
    first = temporary_in(path(""));
  }
  write_text(path("victim"), "old");
  fs::create_symlink(path("victim"), first);
  AtomicFile file(path("a"));
  file.write(bytes_of("new"));
  file.commit();
  EXPECT_TRUE(fs::is_symlink(first));
  EXPECT_EQ(read_text(path("victim")), "old");
  EXPECT_EQ(first.filename().string().size(), std::string(".heed-0123456789abcdef.tmp").size());
}

TEST_F(PosixFiles, FollowsLinksToWhatIsMissing) {
  fs::create_directory(path("folder"));
  fs::create_symlink("folder/other", path("link"));
  fs::create_symlink(path("missing"), path("folder/other"));
  AtomicFile file(path("link"));
  file.write(bytes_of("new"));
  file.commit();
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_TRUE(fs::is_symlink(path("folder/other")));
  EXPECT_EQ(read_text(path("missing")), "new");
  fs::create_symlink("circle", path("circle"));
  EXPECT_THAT([&] { AtomicFile(path("circle")); },
              ThrowsMessage<IoError>(HasSubstr("Too many levels of symbolic links")));
  fs::create_symlink("nowhere/a", path("lost"));
  EXPECT_THAT([&] { AtomicFile(path("lost")); },
              ThrowsMessage<IoError>(HasSubstr("No such file or directory")));
}

TEST_F(PosixFiles, AreNotSweptThroughLinksNorWhileTheyAreOpen) {
  write_text(path("victim"), "old");
  fs::create_symlink("victim", path(".heed-0123456789abcde1.tmp"));
  const io::TemporaryFile used(path(""));  // of a running process
  const struct timespec long_ago[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::futimens(used.descriptor(), long_ago), 0);
  io::sweep_temporary_files("/");
  io::sweep_temporary_files(path(""));
  EXPECT_EQ(num_files(), 3U);
}

TEST_F(PosixFiles, LeavesOtherUsersTemporaryFiles) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const fs::path foreign = path(".heed-0123456789abcdef.tmp");
  write_text(foreign, "left");
  fs::last_write_time(foreign, fs::file_time_type::clock::now() - std::chrono::hours(2));
  ASSERT_EQ(::chown(foreign.c_str(), 12345, 12345), 0);
  io::sweep_temporary_files("/");
  io::sweep_temporary_files(path(""));
  EXPECT_TRUE(fs::exists(foreign));
}

TEST_F(PosixFiles, ThatAreDevicesAreRefused) {
  EXPECT_THAT([] { AtomicFile("/dev/null"); },
              ThrowsMessage<IoError>(HasSubstr("not a regular file")));
  EXPECT_THAT([] { read_npy("/dev/null"); },
              ThrowsMessage<IoError>(HasSubstr("not a regular file")));
}

TEST_F(PosixFiles, ThatMayNotBeReadAreRefused) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read every file";
  write_text(path("secret.npy"), "x");
  fs::permissions(path("secret.npy"), fs::perms::none);
  EXPECT_THAT([&] { read_npy(path("secret.npy")); },
              ThrowsMessage<IoError>(HasSubstr("Permission denied")));
}

// Reading a pipe without a writer would block forever.
TEST_F(PosixFiles, OfAModelAreRegular) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_THAT([&] { io::read_whole_file(path("pipe"), "a text"); },
              ThrowsMessage<IoError>(HasSubstr("not a regular file")));
  EXPECT_THAT(
      [&] { GgufFile::open(path("pipe")); },
      ThrowsMessage<IoError>("cannot read '" + path("pipe").string() + "': not a regular file"));
}

// A child overwrites one file with all zeros or all ones until it is killed.
TEST_F(PosixFiles, AKilledWriterLeavesTheOldFileOrTheNewOne) {
  Tensor<float> zeros({1000, 100});
  Tensor<float> ones({1000, 100});
  std::fill_n(ones.data(), ones.num_elements(), 1.0F);
  write_safetensors(path("t"), {{"x", zeros.view()}});
  for (int round = 0; round < 40; ++round) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) {
        write_safetensors(path("t"), {{"x", ones.view()}});
        write_safetensors(path("t"), {{"x", zeros.view()}});
      }
    }
    ::usleep(static_cast<useconds_t>(500 + 997 * round % 9000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    const Safetensors read = read_safetensors(path("t"));
    const auto& x = std::get<Tensor<float>>(read.tensors.at("x"));
    ASSERT_TRUE(same_bits(x, zeros) || same_bits(x, ones)) << "round " << round;
  }
}

}  // namespace
}  // namespace heed
