#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>

#include "heed/io/safetensors.h"
#include "heed/models/causal_config.h"
#include "support/child.h"
#include "support/command.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::Child;
using testing_support::CommandResult;
using testing_support::read_text;
using testing_support::run_command;
using Arguments = std::vector<std::string>;

class Train : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }
  std::string checkpoint(const std::string& run) const {
    return read_text(path(run + "/checkpoint.safetensors"));
  }

  // Returns a run of a tiny model that is saved often.
  static Arguments tiny(const Arguments& more) {
    Arguments arguments{"train",   "copy", "--length", "3", "--symbols",    "4", "--batch", "2",
                        "--steps", "60",   "--seed",   "7", "--save-every", "3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  static Arguments tiny_lm(const Arguments& more) {
    Arguments arguments{"train",   "lm", "--d-model", "8", "--heads",   "2", "--layers", "1",
                        "--batch", "2",  "--steps",   "4", "--context", "16"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  static void expect_error(int exit_code, const Arguments& arguments, const std::string& text) {
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, exit_code) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr(text));
  }

  testing_support::TemporaryFolder folder_;
};

TEST_F(Train, CopyIsLearnedFromScratch) {
  const CommandResult result = run_command({"train", "copy", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_GT(json.at("exact_match").get<double>(), 0.99);
  EXPECT_THAT(result.err, AllOf(HasSubstr("step 40/400  loss "), HasSubstr("sequences/s"),
                                HasSubstr("step 400/400"), Not(HasSubstr("\r"))));
}

TEST_F(Train, AKilledRunResumesToTheSameBits) {
  ASSERT_EQ(run_command(tiny({"--save", path("whole")})).exit_code, 0);
  for (int round = 0; round < 4; ++round) {
    const std::string run = "run" + std::to_string(round);
    {
      Child child(tiny({"--save", path(run)}));
      child.wait_for("step 6/60");
      ::usleep(static_cast<useconds_t>(1700 * round));
      child.send(SIGKILL);
      const int exit_code = child.finish().exit_code;
      ASSERT_TRUE(exit_code == 128 + SIGKILL || exit_code == 0) << exit_code;
    }
    const CommandResult resumed = run_command({"train", "copy", "--resume", path(run)});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_TRUE(checkpoint(run) == checkpoint("whole")) << "round " << round;
    EXPECT_TRUE(read_text(path(run + "/model.safetensors")) ==
                read_text(path("whole/model.safetensors")));
  }
}

TEST_F(Train, EveryKindOfPositionsResumesToTheSameBits) {
  for (const std::string& positions : models::position_names()) {
    const std::string whole = "whole " + positions;
    const std::string part = "part " + positions;
    ASSERT_EQ(run_command(tiny({"--save", path(whole), "--positions", positions})).exit_code, 0);
    {
      Child child(tiny({"--save", path(part), "--positions", positions}));
      child.wait_for("step 6/60");
      child.send(SIGKILL);
      child.finish();
    }
    const CommandResult resumed = run_command({"train", "copy", "--resume", path(part)});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_TRUE(checkpoint(part) == checkpoint(whole)) << positions;
    EXPECT_EQ(run_command({"diagnose", "--model", path(part)}).exit_code, 0) << positions;
  }
}

TEST_F(Train, TheLossFallsWithEveryKindOfPositions) {
  for (const std::string& positions : models::position_names()) {
    const CommandResult result =
        run_command({"train", "lm", "--steps", "60", "--d-model", "32", "--context", "32",
                     "--positions", positions, "--save", path(positions), "--json"});
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_LT(nlohmann::json::parse(result.out).at("loss").get<double>(), 2.8) << positions;
    const CommandResult written = run_command(
        {"generate", "--model", path(positions), "--tokens", "40", "--temperature", "0"});
    EXPECT_EQ(written.exit_code, 0) << positions << ": " << written.err;
  }
}

TEST_F(Train, CtrlCSavesAndExitsWith130) {
  Arguments endless = tiny({"--save", path("run")});
  *std::find(endless.begin(), endless.end(), "60") = "2000000";
  Child child(endless);
  // The test waits for the first checkpoint, which is written after the signal handler is set.
  for (int i = 0; i < 60'000 && !std::filesystem::exists(path("run/checkpoint.safetensors")); ++i) {
    ::usleep(1000);
  }
  child.send(SIGINT);
  const CommandResult result = child.finish();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_THAT(result.err, AllOf(HasSubstr("heed train copy: interrupted after step "),
                                HasSubstr("--resume " + path("run"))));
  const auto step = read_safetensors(path("run/checkpoint.safetensors")).metadata.at("step");
  EXPECT_THAT(result.err, HasSubstr("after step " + step + " of 2000000"));
  EXPECT_TRUE(std::filesystem::exists(path("run/model.safetensors")));
}

TEST_F(Train, AFullDiskLeavesTheLastCheckpoint) {
  ASSERT_EQ(run_command(tiny({"--save", path("run")})).exit_code, 0);
  const std::string before = checkpoint("run");
  // No file may exceed 10 kB, as on a full disk.
  Child child({"train", "copy", "--resume", path("run")}, [] {
    const rlimit limit{10'000, 10'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::signal(SIGXFSZ, SIG_IGN);
  });
  const CommandResult result = child.finish();
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, AllOf(HasSubstr("cannot write"), HasSubstr("File too large")));
  EXPECT_TRUE(checkpoint("run") == before);
  for (const auto& file : std::filesystem::directory_iterator(path("run"))) {
    EXPECT_NE(file.path().extension(), ".tmp") << file.path();
  }
}

TEST_F(Train, ProgressIsOneLineInATerminal) {
  const CommandResult result = testing_support::run_in_terminal(tiny({}), {{"TERM", "xterm"}}, 80);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("\r[####"), HasSubstr("step 60/60  loss "),
                                HasSubstr("exact match")));
}

TEST_F(Train, TheSameSeedGivesTheSameRunAndAnotherAnother) {
  ASSERT_EQ(run_command(tiny_lm({"--save", path("a")})).exit_code, 0);
  ASSERT_EQ(run_command(tiny_lm({"--save", path("b")})).exit_code, 0);
  ASSERT_EQ(run_command(tiny_lm({"--save", path("c"), "--seed", "1"})).exit_code, 0);
  EXPECT_TRUE(checkpoint("a") == checkpoint("b"));
  EXPECT_FALSE(checkpoint("a") == checkpoint("c"));
}

TEST_F(Train, TheLossOfTheShippedTextFalls) {
  const CommandResult result =
      run_command({"train", "lm", "--steps", "60", "--d-model", "32", "--context", "32", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto json = nlohmann::json::parse(result.out);
  // A guess that knows only the number of characters has ln 45 = 3.81.
  EXPECT_LT(json.at("loss").get<double>(), 2.5);
  ASSERT_EQ(json.at("held_out").size(), 3U);
  EXPECT_LT(json.at("held_out")[0].at("loss").get<double>(), 2.6);
  EXPECT_EQ(json.at("held_out")[2].at("length"), 128);
}

TEST_F(Train, OfALongTextAPartIsMeasuredAndTheLineSaysSo) {
  std::string text;
  while (text.size() < 300'000) text += "abc ";
  std::ofstream(path("long.txt")) << text;
  const CommandResult shown = run_command(tiny_lm({"--text", path("long.txt")}));
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("on what it learned from, in 4096 of 16874 sequences of 16\n"));
  EXPECT_THAT(shown.out, HasSubstr("on what was held out, in sequences of 16\n"));
  const auto json =
      nlohmann::json::parse(run_command(tiny_lm({"--text", path("long.txt"), "--json"})).out);
  EXPECT_EQ(json.at("sequences"), 4096);
  EXPECT_EQ(json.at("held_out")[0].at("sequences"), 1874);
  const CommandResult sent =
      run_command(tiny_lm({"--text", "-", "--json"}), {}, "", path("long.txt"));
  EXPECT_EQ(nlohmann::json::parse(sent.out).at("held_out"), json.at("held_out")) << sent.err;
}

TEST_F(Train, LearnedPositionsEndWhereTheyWereLearned) {
  const CommandResult learned = run_command(tiny_lm({"--positions", "learned"}));
  EXPECT_THAT(
      learned.out,
      HasSubstr("-      on what was held out, in sequences of 32: no position was learned"));
  const CommandResult none = run_command(tiny_lm({"--positions", "none"}));
  EXPECT_THAT(none.out, AllOf(HasSubstr("held out, in sequences of 64\n"), Not(HasSubstr("-"))));
}

TEST_F(Train, OneProcessHasAllTokensOfALongContext) {
  const Arguments arguments{"train",   "lm", "--layers", "1", "--d-model", "8",   "--heads", "2",
                            "--batch", "1",  "--steps",  "2", "--context", "2100"};
  const auto run = [&](const Arguments& more) {
    Arguments all = arguments;
    all.insert(all.end(), more.begin(), more.end());
    return run_command(all);
  };
  const CommandResult result = run({"--save", path("a")});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("learned from, in sequences of 2100\n"),
                                HasSubstr("in sequences of 4200: positions end before\n")));
  ASSERT_EQ(run({"--save", path("b"), "--context-parallel"}).exit_code, 0);
  EXPECT_TRUE(checkpoint("a") == checkpoint("b"));
  expect_error(2, {"train", "lm", "--context", "65537"}, "--context is 65537, expected 1 to 65536");
}

TEST_F(Train, GenerateWritesWithTheSavedModel) {
  ASSERT_EQ(run_command(tiny_lm({"--save", path("m")})).exit_code, 0);
  const auto generate = [&](const Arguments& more) {
    Arguments arguments{"generate", "--model", path("m"), "--tokens", "40", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out).at("text").get<std::string>();
  };
  const std::string text = generate({"--prompt", "The sea "});
  EXPECT_EQ(text.size(), 40U);
  EXPECT_EQ(generate({"--prompt", "The sea "}), text);
  EXPECT_NE(generate({"--prompt", "The sea ", "--seed", "1"}), text);
  const std::string greedy = generate({"--temperature", "0"});
  EXPECT_EQ(generate({"--temperature", "0", "--seed", "1"}), greedy);
  EXPECT_EQ(generate({"--beam", "1"}), greedy);
  EXPECT_EQ(generate({"--beam", "3"}).size(), 40U);
  const CommandResult plain = run_command(
      {"generate", "--model", path("m/model.safetensors"), "--prompt", "The ", "--tokens", "0"});
  EXPECT_EQ(plain.out, "The \n");
}

TEST_F(Train, AMaskIsKeptWithTheModel) {
  const CommandResult masked = run_command(
      tiny_lm({"--save", path("m"), "--mask", "sliding_window(3, 0) | columns(4)", "--json"}));
  ASSERT_EQ(masked.exit_code, 0) << masked.err;
  const auto json = nlohmann::json::parse(masked.out);
  EXPECT_EQ(json.at("model").at("mask"), "sliding_window(3, 0) | columns(4)");
  const CommandResult all = run_command(tiny_lm({"--json"}));
  EXPECT_EQ(nlohmann::json::parse(all.out).at("model").at("mask"), "none");
  EXPECT_NE(nlohmann::json::parse(all.out).at("loss"), json.at("loss"));
  const CommandResult again = run_command({"generate", "--model", path("m"), "--tokens", "5"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  const CommandResult copy = run_command(tiny({"--mask", "streaming(1, 4)", "--json"}));
  EXPECT_EQ(nlohmann::json::parse(copy.out).at("model").at("mask"), "streaming(1, 4)");
  expect_error(2, tiny_lm({"--mask", "streaming"}), "--mask: expected SINKS");
  expect_error(2, tiny_lm({"--mask", "documents(0, 16)"}),
               "--mask 'documents(0, 16)' does not fit sequences of any length: documents: ");
}

TEST_F(Train, GenerateNamesWhatIsWrong) {
  ASSERT_EQ(run_command(tiny_lm({"--save", path("m")})).exit_code, 0);
  ASSERT_EQ(run_command(tiny({"--save", path("copy")})).exit_code, 0);
  const auto with = [&](const std::string& option, const std::string& value) {
    return Arguments{"generate", "--model", path("m"), option, value};
  };
  expect_error(1, with("--prompt", "größe"), "the character 'ö' did not occur");
  expect_error(2, with("--prompt", ""), "--prompt: the text is empty");
  expect_error(2, with("--tokens", "-1"), "--tokens is -1");
  expect_error(2, with("--temperature", "nan"), "--temperature: 'nan' is not a finite number");
  expect_error(2, with("--beam", "0"), "--beam");
  for (const char* option : {"--temperature", "--seed"}) {
    expect_error(2, {"generate", "--model", path("m"), "--beam", "2", option, "1"},
                 std::string(option) + " does not go with --beam");
  }
  expect_error(2, {"generate"}, "--model is required");
  expect_error(1, {"generate", "--model", path("none")}, "No such file");
  expect_error(1, {"generate", "--model", path("copy")},
               "is of `heed train copy`, expected `heed train lm`");
  write_safetensors(path("m/model.safetensors"), {});
  expect_error(1, {"generate", "--model", path("m")}, "a folder without config.json");
  write_safetensors(path("m/model.safetensors"), {},
                    {{"settings", R"({"task":"lm","model":{"vocab_size":1,"context":1,"layers":1,)"
                                  R"("d_model":1000000000000,"heads":1,"positions":"none"}})"}});
  expect_error(1, {"generate", "--model", path("m")}, "--d-model is 1000000000000, expected 1 to");
}

TEST_F(Train, MistakesAreUsageErrorsAndDataErrorsAreNot) {
  expect_error(2, {"train"}, "");
  expect_error(2, {"train", "draw"}, "the verbs of 'train' are copy, lm, translate");
  expect_error(2, {"train", "copy", "--steps", "0"}, "--steps is 0");
  expect_error(2, {"train", "copy", "--lr", "-1"}, "--lr is -1");
  expect_error(2, {"train", "lm", "--d-model", "10", "--heads", "4"}, "a multiple of --heads");
  expect_error(2, {"train", "lm", "--d-model", "9", "--heads", "3"}, "an even number");
  expect_error(2, {"train", "lm", "--positions", "some"},
               "'some' is none of none, sinusoidal, learned, rotary, ");
  expect_error(1, {"train", "lm", "--text", path("missing")}, "No such file");
  expect_error(1, {"train", "lm", "--text", path("")}, "directory");
  std::ofstream(path("short")) << "too short";
  expect_error(1, {"train", "lm", "--text", path("short")}, "the text has 9 characters");
  std::ofstream(path("bytes")) << "\xff\xfe";
  expect_error(1, {"train", "lm", "--text", path("bytes")}, "UTF-8");
}

TEST_F(Train, AFolderHoldsOneRun) {
  ASSERT_EQ(run_command(tiny_lm({"--save", path("lm")})).exit_code, 0);
  expect_error(1, tiny_lm({"--save", path("lm")}), "holds a run already; --resume");
  expect_error(2, {"train", "lm", "--resume", path("lm"), "--save", path("x")}, "--resume");
  expect_error(2, {"train", "lm", "--resume", path("lm"), "--layers", "3"}, "--resume");
  expect_error(1, {"train", "copy", "--resume", path("lm")}, "is of `heed train lm`");
  expect_error(
      1, {"train", "lm", "--resume", path("none")},
      "none' has no checkpoint, checkpoint.safetensors: a run that ended before its first one "
      "begins anew");
  std::ofstream(path("other")) << std::string(500, 'x');
  expect_error(1, {"train", "lm", "--resume", path("lm"), "--text", path("other")},
               "was trained on another text");
  std::ofstream(path("file")) << "x";
  expect_error(1, tiny_lm({"--save", path("file/in")}), "cannot make the folder");
}

}  // namespace
}  // namespace heed
