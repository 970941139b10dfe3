// The verb: its list, its errors, its two ways of printing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "support/command.h"

namespace heed {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::CommandResult;
using testing_support::run_command;

// As a terminal counts the characters of the lessons: none is wide and none combines.
std::size_t columns(const std::string& line) {
  std::size_t count = 0;
  for (const char c : line) count += (static_cast<unsigned char>(c) & 0xC0U) != 0x80U ? 1 : 0;
  return count;
}

json lessons() { return json::parse(run_command({"lesson", "--json"}).out); }

TEST(LessonCommand, ListsEveryLessonWithALine) {
  const CommandResult result = run_command({"lesson"});
  EXPECT_EQ(result.exit_code, 0);
  for (const json& lesson : lessons()) {
    EXPECT_EQ(lesson.size(), 2U);
    EXPECT_THAT(result.out, HasSubstr("  " + lesson["name"].get<std::string>() + " "));
    EXPECT_THAT(result.out, HasSubstr("  " + lesson["shows"].get<std::string>() + "\n"));
  }
  EXPECT_EQ(run_command({"lesson", "--list"}).out, result.out);
  EXPECT_EQ(run_command({"lesson", "--list", "--json"}).out, run_command({"lesson", "--json"}).out);
}

TEST(LessonCommand, EveryLessonFitsAPageAndRecordsNumbers) {
  for (const json& lesson : lessons()) {
    const std::string name = lesson["name"];
    const CommandResult result = run_command({"lesson", name});
    EXPECT_EQ(result.exit_code, 0) << name;
    EXPECT_EQ(result.err, "") << name;
    EXPECT_THAT(result.out, StartsWith(name + ": "));
    std::stringstream text(result.out);
    for (std::string line; std::getline(text, line);) EXPECT_LE(columns(line), 80U) << line;
    const json values = json::parse(run_command({"lesson", name, "--json"}).out);
    EXPECT_TRUE(values.is_object() && !values.empty()) << name;
  }
}

TEST(LessonCommand, SuggestsTheNearestName) {
  const CommandResult result = run_command({"lesson", "sofmax"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("there is no \"sofmax\". Did you mean \"softmax\"?"));
  EXPECT_THAT(result.err, HasSubstr("\n  by-hand "));
  EXPECT_THAT(run_command({"lesson", "runing_example"}).err,
              HasSubstr("Did you mean \"running-example\"?"));
}

TEST(LessonCommand, ShowsAWrongNameWithoutItsControlCharacters) {
  EXPECT_THAT(run_command({"lesson", "\x1B[2J"}).err, HasSubstr("there is no \"\\x1B[2J\""));
}

TEST(LessonCommand, RefusesAListOfOneLesson) {
  EXPECT_EQ(run_command({"lesson", "softmax", "--list"}).exit_code, 2);
  EXPECT_EQ(run_command({"lesson", "softmax", "causal"}).exit_code, 2);
}

}  // namespace
}  // namespace heed
