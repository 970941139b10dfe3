// The verb lesson: its list, its errors, and both kinds of output.
#include "lessons/lesson.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/viz/figure.h"
#include "lessons/report.h"
#include "support/command.h"
#include "support/tiny_model.h"

namespace heed { namespace {

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

// Returns the columns of a line on a terminal: the lessons have no wide or combining characters.
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

// Returns every text between the two marks.
std::vector<std::string> all_between(const std::string& text, const std::string& begin,
                                     const std::string& end) {
  std::vector<std::string> found;
  for (std::size_t at = text.find(begin); at != text.npos; at = text.find(begin, at)) {
    at += begin.size();
    found.push_back(text.substr(at, text.find(end, at) - at));
  }
  return found;
}

// Expects a page with a lesson's picture: its own title, named axes, and titles of panels that are
// no sentence fragments.
void expect_picture(const std::string& name, const std::string& page) {
  const auto title = all_between(page, "<title>", "</title>").at(0);
  EXPECT_THAT(title, AllOf(Not(IsEmpty()), Ne(name), Ne("Figure"), Not(EndsWith(":")))) << name;
  EXPECT_THAT(page, AllOf(HasSubstr("<img alt=\""), HasSubstr("prefers-color-scheme: dark"),
                          HasSubstr("data-theme=\"auto\"")))
      << name;
  for (const std::string& caption : all_between(page, "<caption>", "</caption>")) {
    EXPECT_THAT(caption, AllOf(Not(IsEmpty()), Not(EndsWith(":")))) << name;
  }
  EXPECT_THAT(page, Not(HasSubstr("row \\ column"))) << name;
}

// Expects that axes and bars name their numbers, without formulas in code style.
void expect_labels(const std::string& name, const Figure& figure) {
  const auto expect_text = [&](const std::string& text) {
    EXPECT_FALSE(std::regex_search(text, std::regex("\\b[A-Za-z]_[A-Za-z0-9]"))) << name << text;
  };
  expect_text(figure.title);
  for (const Panel& panel : figure.panels) {
    expect_text(panel.title);
    for (const Curve& curve : panel.curves) expect_text(curve.name);
    for (const Bars& bars : panel.bars) expect_text(bars.name);
    for (const std::string& label : {panel.x.label, panel.y.label}) {
      expect_text(label);
      EXPECT_THAT(label, Not(IsEmpty())) << name << ": " << panel.title;
    }
    if (!panel.color_bar) continue;
    EXPECT_THAT(panel.color_bar->axis.label, Not(IsEmpty())) << name << ": " << panel.title;
    EXPECT_TRUE(panel.color_bar->axis.label != "weight" || panel.color_bar->axis.low >= 0) << name;
  }
}

// Expects a size of A4 in landscape or portrait, at 96 units per inch.
void expect_fits_a_page(const std::string& name, const std::string& svg) {
  const auto extent = [&](const char* side) {
    return std::stod(
        svg.substr(svg.find(std::string(side) + "=\"") + std::string(side).size() + 2));
  };
  const auto [less, more] = std::minmax({extent("width"), extent("height")});
  EXPECT_LE(less, 794) << name;
  EXPECT_LE(more, 1123) << name;
}

TEST(LessonCommand, EveryLessonFitsAPageRecordsNumbersAndHasAPicture) {
  const TemporaryFolder folder;
  const TinyModel model(models::Family::kBert);
  for (const learn::Lesson& lesson : learn::all_lessons()) {
    const std::string name(lesson.name);
    const std::string page = folder / (name + ".html");
    std::vector<std::string> arguments{"lesson", name, "--out", page};
    learn::Report report;
    if (lesson.teach_of_model != nullptr) {
      arguments.insert(arguments.end(), {"--model", model.folder().string()});
      lesson.teach_of_model(report, model.folder());
    } else {
      lesson.teach(report);
    }
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, 0) << name;
    EXPECT_EQ(result.err, "") << name;
    EXPECT_THAT(result.out, StartsWith(name + ": "));
    std::stringstream text(result.out);
    for (std::string line; std::getline(text, line);) EXPECT_LE(columns(line), 80U) << line;
    // The lesson does not mention the tutorials.
    for (const char* other : {"utorial", "otebook"}) EXPECT_THAT(result.out, Not(HasSubstr(other)));
    EXPECT_TRUE(report.values().is_object() && !report.values().empty()) << name;
    const Figure figure = report.drawing()(Theme::kLight);
    expect_labels(name, figure);
    expect_fits_a_page(name, render_figure(figure, FigureFormat::kSvg));
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
  // The product 0.945 is a tie and is rounded once.
  const std::string embeddings = folder / "embeddings.html";
  const CommandResult result = run_command({"lesson", "embeddings", "--out", embeddings});
  EXPECT_THAT(result.out, HasSubstr("  sat [-1.32 -1.10  0.95]\n"));
  EXPECT_THAT(read_text(embeddings),
              HasSubstr("<th scope=\"row\">sat</th><td>-1.32</td><td>-1.10</td><td>0.95</td>"));
}

TEST(LessonCommand, TextIsAsWideAsTheTerminal) {
  const auto widest_prose = [](const char* width) {
    std::stringstream text(run_command({"lesson", "softmax"}, {{"COLUMNS", width}}).out);
    std::size_t widest = 0;
    for (std::string line; std::getline(text, line);) {
      // Skips formulas and titles of a lesson, a step or a matrix.
      const bool is_prose = !line.empty() && line.find_first_of(" 0123456789") != 0 &&
                            line.rfind("softmax: ", 0) != 0 && line.back() != ':';
      if (is_prose) widest = std::max(widest, columns(line));
    }
    return widest;
  };
  EXPECT_LE(widest_prose("44"), 44U);
  EXPECT_THAT(widest_prose("80"), testing::AllOf(testing::Gt(70U), testing::Le(80U)));
  EXPECT_THAT(widest_prose("120"), testing::AllOf(testing::Gt(100U), testing::Le(120U)));
}

TEST(LessonReport, ALongVectorTakesSeveralLines) {
  learn::Report report({.width = 30});
  const Tensor<float> numbers({7}, {1, 2, 3, 4, 5, 6, -7});
  report.show("numbers", "Numbers:", numbers, 2);
  EXPECT_EQ(report.text(),
            "Numbers:\n"
            "  [ 1.00  2.00  3.00  4.00\n"
            "    5.00  6.00 -7.00]\n");
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
