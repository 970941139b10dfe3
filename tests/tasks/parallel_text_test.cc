#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <string>

#include "heed/core/error.h"
#include "heed/tasks/corpus.h"
#include "support/command.h"

namespace heed::tasks { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

class ParallelText : public testing::Test {
 protected:
  Corpus read(const std::string& source, const std::string& target) {
    write("a.txt", source);
    write("b.txt", target);
    return read_parallel_text(folder_ / "a.txt", folder_ / "b.txt", 1);
  }

  void refuses(const std::string& source, const std::string& target, const char* file,
               const char* problem) {
    EXPECT_THAT([&] { read(source, target); },
                ThrowsMessage<FormatError>(AllOf(HasSubstr(file), HasSubstr(problem))));
  }

  const testing_support::TemporaryFolder folder_;

 private:
  void write(const char* name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
};

TEST_F(ParallelText, IsPairedShuffledAndDivided) {
  std::string source;
  std::string target;
  for (int i = 0; i < 50; ++i) {
    source += "s" + std::to_string(i) + "\n";
    target += "t" + std::to_string(i) + "\r\n";
  }
  const Corpus corpus = read(source, target);
  EXPECT_EQ(corpus.train.size(), 40);
  EXPECT_EQ(corpus.validation.size(), 5);
  EXPECT_EQ(corpus.test.size(), 5);
  std::set<std::string> seen;
  for (const auto& part : {corpus.train, corpus.validation, corpus.test}) {
    for (const auto& example : part) {
      EXPECT_EQ(example.source.substr(1), example.target.substr(1));
      EXPECT_TRUE(seen.insert(example.source).second);
    }
  }
  EXPECT_NE(corpus.train.front().source, "s0");
}

TEST_F(ParallelText, SkipsMarksBlankPairsAndRepetitions) {
  const Corpus corpus = read(
      "\xEF\xBB\xBF"
      "a\n\nb\na\nc",
      "x\n \ny\nx\nz\n");
  EXPECT_EQ(corpus.train.size() + corpus.validation.size() + corpus.test.size(), 3);
  for (const auto& part : {corpus.train, corpus.validation, corpus.test}) {
    EXPECT_EQ(part.front().source.size(), 1);
  }
}

TEST_F(ParallelText, RefusesUnevenFiles) {
  refuses("a\nb\nc\n", "x\ny\n", "b.txt", "line 3 is missing: the file has 2 lines, but");
  refuses("", "x\n", "a.txt", "line 1 is missing");
  refuses("a\n\nc\n", "x\ny\nz\n", "a.txt", "line 2 is empty, but not in");
  refuses("a\nb\nc\n", "x\ny\n \t\n", "b.txt", "line 3 is empty, but not in");
  refuses("a\nb\n", "x\ny\n", "a.txt", "2 different pairs of lines, expected at least 3");
  refuses("", "", "a.txt", "0 different pairs");
}

TEST_F(ParallelText, RefusesHostileFiles) {
  refuses("a\nb\xC3\nc\n", "x\ny\nz\n", "a.txt", "line 2 is not valid UTF-8");
  refuses("a\nb\nc\n", "x\ny\n\xED\xA0\x80\n", "b.txt", "line 3 is not valid UTF-8");
  refuses(std::string("a\nb\0\nc\n", 7), "x\ny\nz\n", "a.txt", "line 2 has a control character");
  refuses("a\n\x1B[31mb\nc\n", "x\ny\nz\n", "a.txt", "line 2 has a control character");
  refuses("a\rb\rc\r\n", "x\n", "a.txt", "line 1 has a control character");
  refuses("a\nb\n" + std::string(10001, 'c'), "x\ny\nz\n", "a.txt",
          "line 3 has 10001 bytes, expected at most 10000");
  EXPECT_THROW(read_parallel_text(folder_ / "", folder_ / ""), IoError);
  EXPECT_THROW(read_parallel_text(folder_ / "none", folder_ / "none"), IoError);
}

TEST_F(ParallelText, NamesTheByte) {
  try {
    read("ab\nc\xFF\n", "x\ny\n");
    FAIL();
  } catch (const FormatError& error) {
    EXPECT_EQ(error.byte(), 4);
  }
}

}  // namespace
}  // namespace heed::tasks
