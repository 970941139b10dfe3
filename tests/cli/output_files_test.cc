// The files that the command writes, with existing files, links and closed streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "heed/core/tensor.h"
#include "heed/io/npy.h"
#include "support/child.h"
#include "support/command.h"

namespace heed { namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing_support::Child;
using testing_support::CommandResult;
using testing_support::read_text;
using testing_support::run_command;
using testing_support::TemporaryFolder;

void put(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

// Links with names that could be predicted from the process id.
TEST(OutputFiles, PlantedLinksAreNotWrittenThrough) {
  const TemporaryFolder folder;
  put(folder / "victim", "precious");
  Child child({"explain", "a b", "--out", folder / "o.json"}, [&folder] {
    const std::string start = folder / (".heed-" + std::to_string(::getpid()) + "-");
    for (int i = 0; i < 10; ++i) {
      const std::string name = start + std::to_string(i);
      fs::create_symlink("victim", name + "-staged.tmp");
      fs::create_symlink("victim", name + ".tmp");
    }
  });
  EXPECT_EQ(child.finish().exit_code, 0);
  EXPECT_EQ(read_text(folder / "victim"), "precious");
  EXPECT_THAT(read_text(folder / "o.json"), HasSubstr("weights"));
}

TEST(OutputFiles, DanglingLinksAreFollowed) {
  const TemporaryFolder folder;
  fs::create_symlink("there.json", folder / "link.json");
  const CommandResult result = run_command({"explain", "a b", "--out", folder / "link.json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(fs::is_symlink(folder / "link.json"));
  EXPECT_THAT(read_text(folder / "there.json"), HasSubstr("weights"));
}

TEST(OutputFiles, AFailureAfterwardsNamesWhatWasWritten) {
  const TemporaryFolder folder;
  const CommandResult result =
      run_command({"explain", "a b", "--out", folder / "o.json"}, {}, "/dev/full");
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("standard output cannot be written; written were '" +
                                    (folder / "o.json") + "'"));
  EXPECT_THAT(read_text(folder / "o.json"), HasSubstr("weights"));
}

// A file that is opened must not take the descriptor of a closed stream.
TEST(OutputFiles, NothingIsPrintedIntoThem) {
  const TemporaryFolder folder;
  const Tensor<float> x({2, 3});
  write_npy(folder / "x.npy", x.view());
  Child child({"run", "--query", folder / "x.npy", "--key", folder / "x.npy", "--value",
               folder / "x.npy", "--out", folder / "o.npy"},
              [] { ::close(STDOUT_FILENO); });
  const CommandResult result = child.finish();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("standard output cannot be written; written were '"));
  EXPECT_EQ(to_float(read_npy(folder / "o.npy")).shape(), Shape({2, 3}));
}

TEST(OutputFiles, GalleriesReplaceNothingButGalleries) {
  for (const std::string name : {"README.md", "index.html", "causal-mask.svg"}) {
    const TemporaryFolder folder;
    put(folder / name, "mine");
    const CommandResult result = run_command({"gallery", folder / "", "--light"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr("holds '" + name + "' already, which is not replaced"));
    EXPECT_EQ(read_text(folder / name), "mine");
    EXPECT_EQ(folder.num_files(), 1U);
  }
  const TemporaryFolder folder;
  for (int time = 0; time < 2; ++time) {
    const CommandResult result = run_command({"gallery", folder / "", "--light"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  put(folder / "index.html", "mine");
  EXPECT_EQ(run_command({"gallery", folder / "", "--light"}).exit_code, 1);
  EXPECT_EQ(read_text(folder / "index.html"), "mine");
}

TEST(OutputFiles, RunsAndReportsReplaceNothing) {
  const std::vector<std::string> lm{"train",   "lm",       "--d-model", "8",       "--heads",
                                    "2",       "--layers", "1",         "--batch", "2",
                                    "--steps", "4",        "--context", "16"};
  const std::vector<std::string> tiny{"--task",     "copy", "--max-length", "3", "--examples", "20",
                                      "--held-out", "4",    "--d-model",    "8"};
  const auto expect_refusal = [&](std::vector<std::string> verb,
                                  const std::vector<std::string>& more, const std::string& option,
                                  const std::string& name) {
    const TemporaryFolder folder;
    put(folder / name, "mine");
    verb.insert(verb.end(), more.begin(), more.end());
    verb.insert(verb.end(), {option, folder / ""});
    const CommandResult result = run_command(verb);
    EXPECT_EQ(result.exit_code, 1) << name;
    EXPECT_THAT(result.err, HasSubstr("holds '" + name + "' already, which is not replaced"));
    EXPECT_EQ(read_text(folder / name), "mine");
    EXPECT_EQ(folder.num_files(), 1U) << name;
  };
  expect_refusal(lm, {}, "--save", "model.safetensors");
  for (const char* name : {"model.safetensors", "settings.json", "source_vocabulary.json"}) {
    expect_refusal({"train", "translate"}, tiny, "--save", name);
  }
  for (const char* name : {"report.md", "report.html", "alignment_1_dot.svg", "dot"}) {
    expect_refusal({"compare"}, tiny, "--out", name);
  }
}

TEST(TextFiles, WhatHasNoEndIsRefused) {
  const CommandResult result = run_command({"train", "lm", "--text", "/dev/zero"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("cannot read '/dev/zero': neither a file nor a pipe"));
  const TemporaryFolder folder;
  put(folder / "long", "");
  fs::resize_file(folder / "long", (std::uintmax_t{1} << 30) + 1);
  const CommandResult longer = run_command({"train", "lm", "--text", folder / "long"});
  EXPECT_EQ(longer.exit_code, 1);
  EXPECT_THAT(longer.err, HasSubstr("it has more than 1073741824 bytes"));
}

}  // namespace
}  // namespace heed
