#include "io/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heed/error.h"
#include "heed/io/npy.h"
#include "io/io_test_util.h"

namespace heed {
namespace {

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
  if (::geteuid() != 0) {  // root may read everything
    write_text(path("secret.npy"), "x");
    fs::permissions(path("secret.npy"), fs::perms::none);
    EXPECT_THAT([&] { read_npy(path("secret.npy")); },
                ThrowsMessage<IoError>(HasSubstr("Permission denied")));
  }
}

}  // namespace
}  // namespace heed
