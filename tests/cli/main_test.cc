#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/attention/mask_text.h"
#include "heed/core/config.h"
#include "support/child.h"
#include "support/command.h"
#include "support/sanitizers.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing_support::Child;
using testing_support::run_command;
using testing_support::TemporaryFolder;

TEST(Command, VersionGoesToStdout) {
  const auto result = run_command({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, std::string("heed ") + version() + '\n');
  EXPECT_EQ(result.err, "");
}

// Under a memory limit in which a second thread of OpenBLAS would get no memory.
TEST(Command, NeedsLittleMemoryToStart) {
#if defined(HEED_HAS_ADDRESS_SANITIZER) || defined(HEED_HAS_THREAD_SANITIZER)
  GTEST_SKIP() << "sanitizers need terabytes of addresses";
#endif
  constexpr rlim_t kMegabyte = 1 << 20;
  for (const rlim_t megabytes : {150, 170, 200, 250}) {
    Child command({"--version"}, [&] {
      const rlimit limit{megabytes * kMegabyte, megabytes * kMegabyte};
      ::setrlimit(RLIMIT_AS, &limit);
      ::alarm(60);  // ends a command that hangs
    });
    EXPECT_EQ(command.finish().exit_code, 0) << megabytes << " MiB";
  }
}

TEST(Command, WithoutFontsNothingIsComputedThatIsToBeDrawn) {
  const TemporaryFolder folder;
  const std::string configuration = folder / "fonts.conf";
  std::ofstream(configuration) << "<fontconfig></fontconfig>";
  const std::string out = folder / "out";
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"mask", "causal", "--seq", "4", "--out", out + ".svg"},
           {"mask", "causal", "--seq", "4", "--out", out + ".html"},
           {"explain", "--model", "/nowhere", "--out", out + ".png", "A sentence"},
           {"compare", "--out", out},
           {"compare", "positions", "--out", out + ".svg"},
           {"gallery", out}}) {
    const auto result = run_command(arguments, {{"FONTCONFIG_FILE", configuration}});
    EXPECT_EQ(result.exit_code, 1) << arguments[0];
    EXPECT_EQ(result.out, "") << arguments[0];
    EXPECT_THAT(result.err,
                AllOf(HasSubstr("finds no font to write with"), HasSubstr("fonts-dejavu-core")));
  }
  EXPECT_EQ(folder.num_files(), 1U) << "the configuration alone";
}

TEST(Command, HelpNamesEveryVerbAndGivesExamples) {
  const auto result = run_command({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* verb :
       {"demo  ", "explain  ", "mask  ", "run  ", "lesson  ", "bench  ", "info  ", "Examples:"}) {
    EXPECT_THAT(result.out, HasSubstr(verb));
  }
}

// Returns every verb of the command, "train copy" as two words.
std::vector<std::vector<std::string>> all_verbs() {
  return {{"demo"},
          {"explain"},
          {"mask"},
          {"serve"},
          {"run"},
          {"lesson"},
          {"gallery"},
          {"train"},
          {"train", "copy"},
          {"train", "lm"},
          {"train", "translate"},
          {"generate"},
          {"diagnose"},
          {"heads"},
          {"translate"},
          {"evaluate"},
          {"compare"},
          {"bench"},
          {"info"}};
}

TEST(Command, HelpFitsEightyColumns) {
  for (std::vector<std::string> verb : all_verbs()) {
    verb.emplace_back("--help");
    std::istringstream help(run_command(verb).out);
    for (std::string line; std::getline(help, line);) EXPECT_LE(line.size(), 84U) << line;
  }
}

// Returns the help without line breaks.
std::string help_of(std::vector<std::string> verb) {
  verb.emplace_back("--help");
  const auto result = run_command(verb);
  EXPECT_EQ(result.exit_code, 0) << verb[0];
  std::istringstream words(result.out);
  std::string text;
  for (std::string word; words >> word;) text += word + ' ';
  return text;
}

TEST(Command, HelpSaysInWordsWhatGoesTogether) {
  for (const std::vector<std::string>& verb : all_verbs()) {
    const std::string help = help_of(verb);
    for (const char* noise :
         {"Excludes:", "Needs:", "REQUIRED", "Env:", " INT", " UINT", " FLOAT", "NAME TEXT"}) {
      EXPECT_THAT(help, Not(HasSubstr(noise))) << verb[0];
    }
  }
  EXPECT_THAT(help_of({"train", "lm"}),
              AllOf(HasSubstr("no other setting of a run"), HasSubstr("(default: 500)"),
                    Not(HasSubstr("Not with --resume"))));
  EXPECT_THAT(help_of({"diagnose"}), HasSubstr("Only with --weights"));
  EXPECT_THAT(help_of({"lesson"}), HasSubstr("Not with NAME"));
  EXPECT_THAT(help_of({"run"}), HasSubstr("(required)"));
}

TEST(Command, AloneItPrintsTheHelpToStderr) {
  const auto result = run_command({});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, run_command({"--help"}).out);
}

TEST(Command, UnknownVerbIsNamedWithTheKnownOnes) {
  const auto result = run_command({"demonstrate"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("heed: there is no verb 'demonstrate'; the verbs are demo, "));
}

TEST(Command, UnknownOptionIsAUsageErrorOfTheVerb) {
  const auto result = run_command({"info", "--jsno"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, AllOf(StartsWith("heed info: "), HasSubstr("--jsno"),
                                HasSubstr("`heed info --help`")));
}

void expect_usage(const std::vector<std::string>& arguments, const std::string& message) {
  const auto result = run_command(arguments);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr(message + '\n')) << arguments[0];
}

TEST(Command, WhatIsMisspeltGetsASuggestion) {
  EXPECT_THAT(run_command({"explian", "a"}).err,
              HasSubstr("no verb 'explian'; did you mean 'explain'? The verbs are demo, "));
  EXPECT_THAT(run_command({"train", "ln"}).err,
              HasSubstr("did you mean 'lm'? The verbs of 'train'"));
  expect_usage({"info", "--jsno"},
               "heed info: there is no option '--jsno'; did you mean '--json'?");
  expect_usage({"explain", "a", "--head-dim=3"}, "there is no option '--head-dim'");
  expect_usage({"explain", "a", "--tempratur=3"},
               "there is no option '--tempratur'; did you mean '--temperature'?");
  EXPECT_THAT(run_command({"mask", "casual"}).err, HasSubstr("(did you mean 'causal'?)"));
}

TEST(Command, OptionsOfOtherProgramsAreAnsweredByTheirNameHere) {
  expect_usage(
      {"explain", "a", "--causal"},
      "there is no option '--causal': say --mask causal, or --mask \"causal(bottom_right)\"");
  expect_usage({"diagnose", "--weights", "w.npy", "--window", "2,0"},
               "there is no option '--window': say --mask \"sliding_window(LEFT, RIGHT)\"");
  expect_usage({"explain", "a", "--scale", "log"},
               "there is no option '--scale': say --color-scale for the colours of a picture");
}

TEST(Command, AllThatIsMissingIsNamedAtOnce) {
  expect_usage({"run"}, "heed run: --query, --key, --value, --out are required");
  expect_usage({"run", "--key", "k.npy", "--out", "o.npy"}, "--query, --value are required");
  expect_usage({"explain"}, "SENTENCE is required");
}

TEST(Command, TheHelpOfMasksListsEveryMaskWithItsArguments) {
  const std::string help = run_command({"mask", "--help"}).out;
  for (const MaskSyntax& mask : mask_syntax()) {
    EXPECT_THAT(help, HasSubstr("\n  " + std::string(mask.name) + std::string(mask.arguments)));
  }
}

TEST(Command, ErrorsNeverCarryEscapeSequences) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"\x1b[31mred"}, {"info", "\x1b[31mred"}}) {
    const auto result = run_command(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, AllOf(HasSubstr("\\x1B[31mred"), Not(HasSubstr("\x1b"))));
  }
}

TEST(Command, SaysWhenStdoutCannotBeWritten) {
  for (const std::string verb : {"info", "demo", "--help"}) {
    const auto result = run_command({verb}, {}, "/dev/full");
    EXPECT_EQ(result.exit_code, 1) << verb;
    EXPECT_THAT(result.err, HasSubstr("standard output cannot be written"));
  }
}

TEST(Info, PrintsOneJsonObject) {
  const auto result = run_command({"info", "--json"});
  const auto json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json.at("version"), version());
  EXPECT_GE(json.at("threads").get<int>(), 1);
  EXPECT_TRUE(json.at("instruction_sets").is_array());
  EXPECT_THAT(json.at("blas").get<std::string>(), Not(IsEmpty()));
}

}  // namespace
}  // namespace heed
