#include "io/atomic_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <array>
#include <chrono>

#include "heed/core/error.h"
#include "heed/io/npy.h"
#include "io/io_test_util.h"

namespace heed { namespace {

namespace fs = std::filesystem;
using io::AtomicFile;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class AtomicFileTest : public IoTest {};

TEST_F(AtomicFileTest, ReplacesOnlyOnCommit) {
  write_text(path("a"), "old");
  {
    AtomicFile file(path("a"));
    file.write(bytes_of("ne"));
    file.write(bytes_of("w"));
    EXPECT_EQ(read_text(path("a")), "old");
    file.commit();
  }
  EXPECT_EQ(read_text(path("a")), "new");
  EXPECT_EQ(num_files(), 1U);
}

TEST_F(AtomicFileTest, RefusesAPathWithANul) {
  write_text(path("a"), "old");
  const fs::path two(path("a").string() + std::string("\0b", 2));
  EXPECT_THAT([&] { AtomicFile file(two); },
              ThrowsMessage<IoError>(AllOf(HasSubstr("cannot write"), HasSubstr("after a NUL"))));
  EXPECT_THAT([&] { read_npy(two); },
              ThrowsMessage<IoError>(AllOf(HasSubstr("cannot read"), HasSubstr("after a NUL"))));
  EXPECT_EQ(read_text(path("a")), "old");
}

TEST_F(AtomicFileTest, LeavesNothingBehindOnFailure) {
  write_text(path("a"), "old");
  const auto fail = [](const io::ByteSink& sink) {
    sink(bytes_of("half"));
    throw std::runtime_error("no more");
  };
  EXPECT_THROW(io::write_file_atomically(path("a"), fail), std::runtime_error);
  EXPECT_EQ(read_text(path("a")), "old");
  EXPECT_THROW(io::write_file_atomically(path("b"), fail), std::runtime_error);
  EXPECT_EQ(num_files(), 1U);
}

TEST_F(AtomicFileTest, KeepsPermissionsAndFollowsLinks) {
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

TEST_F(AtomicFileTest, IsItsOwnersAloneUntilItIsRenamed) {
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
TEST_F(AtomicFileTest, NamesCannotBeForeseen) {
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

TEST_F(AtomicFileTest, FollowsLinksToWhatIsMissing) {
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

TEST_F(AtomicFileTest, SeveralAreAllOrNothing) {
  const auto commit = [this](const std::function<void()>& meanwhile) {
    AtomicFile a(path("a"));
    AtomicFile b(path("b"));
    AtomicFile c(path("c"));
    const std::array<AtomicFile*, 3> files{&a, &b, &c};
    for (AtomicFile* file : files) file->write(bytes_of("new"));
    meanwhile();
    AtomicFile::commit_all(files);
  };
  write_text(path("a"), "old");
  EXPECT_THAT([&] { commit([this] { fs::create_directory(path("c")); }); },
              ThrowsMessage<IoError>(HasSubstr("Is a directory")));
  EXPECT_EQ(read_text(path("a")), "old");
  EXPECT_EQ(num_files(), 2U) << "a, and the folder in the way";
  fs::remove(path("c"));
  commit([] {});
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(read_text(path(name)), "new");
  EXPECT_EQ(num_files(), 3U);
}

TEST_F(AtomicFileTest, SweepsWhatAKilledProcessHasLeft) {
  const auto plant = [&](const std::string& name) {
    write_text(path(name), "left");
    fs::last_write_time(path(name), fs::file_time_type::clock::now() - std::chrono::hours(2));
  };
  const std::string old = ".heed-0123456789abcdef.tmp";
  const std::string young = ".heed-0123456789abcde0.tmp";
  plant(old);
  write_text(path(young), "left");  // of a process killed a moment ago
  for (const char* name : {".heed-0123456789abcdef.old", ".heed-0123456789abcdex.tmp",
                           ".heed-0123456789abcdef.tmp.txt", "heed-0123456789abcdef.tmp"}) {
    plant(name);
  }
  plant("victim");
  fs::create_symlink("victim", path(".heed-0123456789abcde1.tmp"));
  fs::create_directory(path(".heed-0123456789abcde2.tmp"));
  const io::TemporaryFile used(path(""));  // of a running process
  const struct timespec long_ago[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::futimens(used.descriptor(), long_ago), 0);
  const std::size_t before = num_files();
  io::sweep_temporary_files("/");
  io::sweep_temporary_files(path(""));
  EXPECT_FALSE(fs::exists(path(old)));
  EXPECT_FALSE(fs::exists(path(young)));
  EXPECT_EQ(num_files(), before - 2);
  plant(old);
  io::sweep_temporary_files(path(""));
  EXPECT_TRUE(fs::exists(path(old))) << "the same folder twice";
  io::sweep_temporary_files("/");
  { const AtomicFile file(path("a")); }
  EXPECT_FALSE(fs::exists(path(old)));
}

TEST_F(AtomicFileTest, SweepsOldFilesThatNobodyKeepsOnceTheirSuccessorIsWritten) {
  const std::string name = ".heed-0123456789abcdef-a.old";
  for (const char* other :
       {".heed-0123456789abcdef-b.old", ".heed-0123456789abcdef-a.older", ".heed-0123-a.old"}) {
    write_text(path(other), "old");
  }
  write_text(path(name), "old");
  const auto save = [this] { io::write_file_atomically(path("a"), [](const io::ByteSink&) {}); };
  { const AtomicFile abandoned(path("a")); }
  EXPECT_TRUE(fs::exists(path(name))) << "nothing was written";
  {
    const io::FileDescriptor keeper(::open(path(name).c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::flock(keeper.get(), LOCK_SH), 0);
    save();
    EXPECT_TRUE(fs::exists(path(name))) << "somebody needs it";
  }
  save();
  EXPECT_FALSE(fs::exists(path(name)));
  EXPECT_EQ(num_files(), 4U) << "a, and those of other names";
}

TEST_F(AtomicFileTest, OldFilesOfLongNamesFitAndDiffer) {
  const std::string longest(255, 'a');
  EXPECT_EQ(io::random_name(io::old_ending(path(longest))).size(), 255U);
  EXPECT_EQ(io::old_ending(path(std::string(228, 'a'))), '-' + std::string(228, 'a') + ".old");
  EXPECT_NE(io::old_ending(path(longest)), io::old_ending(path(std::string(254, 'a') + 'b')));
}

TEST_F(AtomicFileTest, LeavesOtherUsersTemporaryFiles) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  const fs::path foreign = path(".heed-0123456789abcdef.tmp");
  write_text(foreign, "left");
  fs::last_write_time(foreign, fs::file_time_type::clock::now() - std::chrono::hours(2));
  ASSERT_EQ(::chown(foreign.c_str(), 12345, 12345), 0);
  io::sweep_temporary_files("/");
  io::sweep_temporary_files(path(""));
  EXPECT_TRUE(fs::exists(foreign));
}

TEST_F(AtomicFileTest, GivesTheReason) {
  EXPECT_THAT([&] { AtomicFile(path("missing") / "a"); },
              ThrowsMessage<IoError>(
                  AllOf(HasSubstr("cannot write"), HasSubstr("No such file or directory"))));
  fs::create_directory(path("folder"));
  EXPECT_THAT([&] { AtomicFile(path("folder")); },
              ThrowsMessage<IoError>(HasSubstr("Is a directory")));
  EXPECT_THAT([] { AtomicFile("/dev/null"); },
              ThrowsMessage<IoError>(HasSubstr("not a regular file")));
  EXPECT_THAT([] { AtomicFile(""); }, ThrowsMessage<IoError>(HasSubstr("cannot write ''")));
}

TEST_F(AtomicFileTest, ReadersGiveTheReasonToo) {
  EXPECT_THAT([&] { read_npy(path("missing.npy")); },
              ThrowsMessage<IoError>(
                  AllOf(HasSubstr("missing.npy"), HasSubstr("No such file or directory"))));
  EXPECT_THAT([&] { read_npy(path("")); }, ThrowsMessage<IoError>(HasSubstr("Is a directory")));
  EXPECT_THAT([] { read_npy("/dev/null"); },
              ThrowsMessage<IoError>(HasSubstr("not a regular file")));
  if (::geteuid() != 0) {  // root may read every file
    write_text(path("secret.npy"), "x");
    fs::permissions(path("secret.npy"), fs::perms::none);
    EXPECT_THAT([&] { read_npy(path("secret.npy")); },
                ThrowsMessage<IoError>(HasSubstr("Permission denied")));
  }
}

}  // namespace
}  // namespace heed
