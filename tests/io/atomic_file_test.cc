#include "io/atomic_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  fs::create_directory(path(".heed-0123456789abcde2.tmp"));
  const io::TemporaryFile used(path(""));  // of a running process
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
    const auto keeper =
        platform::open_to_read(path(name), platform::PipesWithoutWriter::kDoNotWait);
    ASSERT_TRUE(platform::try_lock_shared(keeper.get()));
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

TEST_F(AtomicFileTest, GivesTheReason) {
  EXPECT_THAT([&] { AtomicFile(path("missing") / "a"); },
              ThrowsMessage<IoError>(
                  AllOf(HasSubstr("cannot write"), HasSubstr("No such file or directory"))));
  fs::create_directory(path("folder"));
  EXPECT_THAT([&] { AtomicFile(path("folder")); },
              ThrowsMessage<IoError>(HasSubstr("Is a directory")));
  EXPECT_THAT([] { AtomicFile(""); }, ThrowsMessage<IoError>(HasSubstr("cannot write ''")));
}

TEST_F(AtomicFileTest, ReadersGiveTheReasonToo) {
  EXPECT_THAT([&] { read_npy(path("missing.npy")); },
              ThrowsMessage<IoError>(
                  AllOf(HasSubstr("missing.npy"), HasSubstr("No such file or directory"))));
  EXPECT_THAT([&] { read_npy(path("")); }, ThrowsMessage<IoError>(HasSubstr("Is a directory")));
}

}  // namespace
}  // namespace heed
