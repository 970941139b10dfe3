// The verb: its list, its errors, its two ways of printing.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/command.h"
#include "support/tiny_model.h"

namespace heed {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Ne;
using testing::Not;
using testing::StartsWith;
using testing_support::CommandResult;
using testing_support::read_text;
using testing_support::run_command;
using testing_support::TemporaryFolder;
using testing_support::TinyModel;

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

// What stands between two marks, each time.
std::vector<std::string> all_between(const std::string& text, const std::string& begin,
                                     const std::string& end) {
  std::vector<std::string> found;
  for (std::size_t at = text.find(begin); at != text.npos; at = text.find(begin, at)) {
    at += begin.size();
    found.push_back(text.substr(at, text.find(end, at) - at));
  }
  return found;
}

// A page with the picture of a lesson: a headline of its own, named axes, titles of panels that are
// no half sentences.
void expect_picture(const std::string& name, const std::string& page) {
  const auto title = all_between(page, "<title>", "</title>").at(0);
  EXPECT_THAT(title, AllOf(Not(IsEmpty()), Ne(name), Ne("Figure"), Not(EndsWith(":")))) << name;
  EXPECT_THAT(page, HasSubstr("<svg role=\"img\"")) << name;
  for (const std::string& caption : all_between(page, "<caption>", "</caption>")) {
    EXPECT_THAT(caption, AllOf(Not(IsEmpty()), Not(EndsWith(":")))) << name;
  }
  EXPECT_THAT(page, Not(HasSubstr("row \\ column"))) << name;
}

TEST(LessonCommand, EveryLessonFitsAPageRecordsNumbersAndHasAPicture) {
  const TemporaryFolder folder;
  const TinyModel model(models::Family::kBert);
  for (const json& lesson : lessons()) {
    const std::string name = lesson["name"];
    const std::string picture = folder / (name + ".svg");
    std::vector<std::string> arguments{"lesson", name};
    if (name == "real-heads")
      arguments.insert(arguments.end(), {"--model", model.folder().string()});
    const auto run_with = [&](const std::vector<std::string>& more) {
      std::vector<std::string> all = arguments;
      all.insert(all.end(), more.begin(), more.end());
      return run_command(all);
    };
    const CommandResult result = run_with({"--out", picture});
    EXPECT_EQ(result.exit_code, 0) << name;
    EXPECT_EQ(result.err, "") << name;
    EXPECT_THAT(result.out, StartsWith(name + ": "));
    std::stringstream text(result.out);
    for (std::string line; std::getline(text, line);) EXPECT_LE(columns(line), 80U) << line;
    EXPECT_THAT(read_text(picture), HasSubstr("</svg>")) << name;
    const std::string page = folder / (name + ".html");
    const json values = json::parse(run_with({"--json", "--out", page}).out);
    EXPECT_TRUE(values.is_object() && !values.empty()) << name;
    expect_picture(name, read_text(page));
  }
}

TEST(LessonCommand, ALessonIsDrawnInEveryFormat) {
  const TemporaryFolder folder;
  for (const auto& [ending, begin] :
       {std::pair{"png", "\x89PNG"}, {"pdf", "%PDF-"}, {"json", "{"}}) {
    const std::string path = folder / (std::string("softmax.") + ending);
    EXPECT_EQ(run_command({"lesson", "softmax", "--dark", "--out", path}).exit_code, 0);
    EXPECT_THAT(read_text(path), StartsWith(begin));
  }
  const CommandResult refused = run_command({"lesson", "softmax", "--out", folder / "s.gif"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.out, "");
  EXPECT_THAT(refused.err, HasSubstr("does not end in .png, .svg, .pdf, .json or .html"));
}

TEST(LessonCommand, APictureHasTheNumbersOfItsText) {
  const TemporaryFolder folder;
  const std::string page = folder / "causal.html";
  ASSERT_EQ(run_command({"lesson", "causal", "--out", page}).exit_code, 0);
  EXPECT_THAT(read_text(page),
              AllOf(HasSubstr("<td>0.359</td><td>0.641</td><td>masked</td><td>masked</td>"),
                    Not(HasSubstr("<td>0.059</td>"))));
  const std::string by_hand = folder / "by-hand.html";
  ASSERT_EQ(run_command({"lesson", "by-hand", "--out", by_hand}).exit_code, 0);
  EXPECT_THAT(read_text(by_hand), HasSubstr("<td>0.3302</td><td>0.6698</td><td>masked</td>"));
}

TEST(LessonCommand, ComplexityReportsWhatItMeasured) {
  const TemporaryFolder folder;
  const CommandResult result = run_command({"lesson", "complexity", "--out", folder / "c.json"});
  const json times = json::parse(read_text(folder / "c.json"))["times"];
  ASSERT_EQ(times.size(), 4U);
  const auto milliseconds = [&](std::size_t i) { return times[i]["milliseconds"].get<double>(); };
  EXPECT_THAT(result.out,
              HasSubstr(fmt::format("took {:.0f} times", milliseconds(3) / milliseconds(0))));
  EXPECT_THAT(result.out, Not(HasSubstr("should")));
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

TEST(LessonCommand, SuggestsNothingWhereNoNameIsNear) {
  for (const char* name : {"nope", "x", "transformers"}) {
    const CommandResult result = run_command({"lesson", name});
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.err, AllOf(HasSubstr("The lessons are:"), Not(HasSubstr("Did you mean"))));
  }
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
