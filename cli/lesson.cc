// heed lesson: demonstrations, step by step.
#include "lessons/lesson.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "arguments.h"
#include "core/closest_name.h"
#include "heed/viz/terminal.h"
#include "output_files.h"
#include "picture_file.h"
#include "verbs.h"

namespace heed::cli {

namespace {

struct LessonArguments {
  std::string name;
  std::string model;
  std::string out;
  PictureArguments picture;
  bool list = false;
  bool as_json = false;
};

std::string list_of_lessons() {
  std::size_t width = 0;
  for (const learn::Lesson& lesson : learn::all_lessons())
    width = std::max(width, lesson.name.size());
  std::string text;
  for (const learn::Lesson& lesson : learn::all_lessons()) {
    text += fmt::format("  {:<{}}  {}\n", lesson.name, width, lesson.shows);
  }
  return text;
}

// Returns "Did you mean …? " where a lesson has a similar name; else empty.
std::string suggestion(std::string_view name) {
  std::vector<std::string_view> names;
  for (const learn::Lesson& lesson : learn::all_lessons()) names.emplace_back(lesson.name);
  const std::string_view closest = heed::detail::closest_name(name, names);
  return closest.empty() ? "" : fmt::format("Did you mean \"{}\"? ", closest);
}

const learn::Lesson& find_lesson(const std::string& name) {
  const auto lessons = learn::all_lessons();
  const auto found = std::find_if(lessons.begin(), lessons.end(),
                                  [&](const learn::Lesson& lesson) { return lesson.name == name; });
  if (found == lessons.end()) {
    throw UsageError(fmt::format("there is no \"{}\". {}The lessons are:\n{}", name,
                                 suggestion(name), list_of_lessons()));
  }
  return *found;
}

void print_list(bool as_json) {
  if (!as_json) {
    std::cout << "Lessons; `heed lesson NAME` gives one:\n\n" << list_of_lessons();
    return;
  }
  auto list = nlohmann::json::array();
  for (const learn::Lesson& lesson : learn::all_lessons()) {
    list.push_back({{"name", lesson.name}, {"shows", lesson.shows}});
  }
  std::cout << list.dump(2) << '\n';
}

void teach(const learn::Lesson& lesson, const std::string& model, learn::Report& report) {
  if (lesson.teach_of_model == nullptr) {
    lesson.teach(report);
  } else {
    lesson.teach_of_model(report, model.empty() ? learn::kLessonModel : model);
  }
}

void run_lesson(const learn::Lesson& lesson, const LessonArguments& arguments) {
  if (!arguments.model.empty() && lesson.teach_of_model == nullptr) {
    throw UsageError(fmt::format("--model: the lesson {} looks at no model", lesson.name));
  }
  const std::string option = "--out";
  learn::Report report(detect_terminal(STDOUT_FILENO));
  const auto draw = [&](Theme theme) { return [&, theme] { return report.drawing()(theme); }; };
  const bool is_dark = arguments.picture.is_dark;
  const Picture picture{.figure = draw(arguments.picture.theme()),
                        .dark = is_dark ? std::function<Figure()>() : draw(Theme::kDark),
                        .json = [&] { return report.values().dump(2) + '\n'; }};
  OutputFiles files;
  // A lesson may take a while, so the output file is checked first.
  if (!arguments.out.empty()) {
    check_picture(option, arguments.out, picture);
    files.reserve(option, arguments.out);
  }
  teach(lesson, arguments.model, report);
  if (!arguments.out.empty()) write_picture(files, option, arguments.out, picture);
  files.commit();
  if (arguments.as_json) {
    std::cout << report.values().dump(2) << '\n';
  } else {
    std::cout << fmt::format("{}: {}\n\n{}", lesson.name, lesson.shows, report.text());
  }
}

}  // namespace

void add_lesson(CLI::App& command) {
  CLI::App* verb = command.add_subcommand(
      "lesson", "Learn attention step by step: list the lessons, or give one");
  auto arguments = std::make_shared<LessonArguments>();
  CLI::Option* name =
      add_option(*verb, "NAME", arguments->name, "The lesson; without it, the list");
  add_flag(*verb, "--list", arguments->list, "List the lessons")->excludes(name);
  add_option(
      *verb, "--model", arguments->model,
      fmt::format("The trained model that real-heads looks at; without it {}", learn::kLessonModel))
      ->type_name("PATH")
      ->needs(name);
  add_flag(*verb, "--json", arguments->as_json,
           "Print the list, or every number of the lesson, as JSON");
  add_option(*verb, "--out", arguments->out,
             "Also write a picture of the lesson to a file that ends in .png, .svg, .pdf or "
             ".html, or its numbers to .json")
      ->type_name("FILE")
      ->needs(name);
  add_flag(*verb, "--dark", arguments->picture.is_dark, "Draw the picture on a dark ground");
  verb->callback([arguments, name] {
    if (name->count() == 0) {
      print_list(arguments->as_json);
    } else {
      run_lesson(find_lesson(arguments->name), *arguments);
    }
  });
}

}  // namespace heed::cli
