#include "compare/comparison_arguments.h"

#include <fmt/format.h>

#include <iostream>

#include "arguments.h"
#include "heed/core/parallel.h"
#include "heed/tasks/shipped_text.h"
#include "input_text.h"
#include "markdown_text.h"
#include "output_files.h"
#include "picture_file.h"
#include "train/session.h"

namespace heed::cli {

namespace {

constexpr const char* kComparisonOut = "--out";

Picture picture_of_comparison(const Compared& compared, Theme theme) {
  return {.figure = [compared, theme] { return compared.figure(theme); },
          .json = [compared] { return compared.json.dump(2) + '\n'; }};
}

}  // namespace

void add_comparison_arguments(CLI::App& verb, ComparisonArguments& arguments) {
  add_option(verb, "--text", arguments.text,
             "What to learn, in UTF-8; a short story that comes with heed if not given")
      ->type_name("FILE");
  add_flag(verb, "--quick", arguments.is_quick, "One seed and fewer steps, for a first look");
  add_option(verb, kComparisonOut, arguments.out,
             "A picture, or the numbers: ends in " +
                 picture_endings(picture_of_comparison({}, Theme::kLight)))
      ->type_name("FILE");
  add_flag(verb, "--dark", arguments.is_dark, "Draw the picture on a dark ground");
  add_flag(verb, "--json", arguments.as_json, "Print the result as one JSON object");
  add_threads_option(verb, arguments.threads);
}

void add_quick_number(CLI::App& verb, const OptionText& option, ComparisonArguments& arguments,
                      const QuickNumber& number) {
  QuickNumber& kept = arguments.quick_numbers.emplace_back(number);
  const std::string text =
      fmt::format("{}: {}, with --quick {}", option.text, *kept.setting, kept.quick);
  add_option(verb, option.name, kept.given, text)->type_name("N");
}

void choose_quick_numbers(const ComparisonArguments& arguments) {
  for (const QuickNumber& number : arguments.quick_numbers) {
    *number.setting = number.given.value_or(arguments.is_quick ? number.quick : *number.setting);
  }
}

void run_comparison(const ComparisonArguments& arguments,
                    const std::function<Compared(std::string_view text)>& compare) {
  OutputFiles files;
  const Theme theme = arguments.is_dark ? Theme::kDark : Theme::kLight;
  if (!arguments.out.empty()) {
    check_picture(kComparisonOut, arguments.out, picture_of_comparison({}, theme));
    if (!arguments.text.empty()) files.protect("--text", arguments.text);
    files.reserve(kComparisonOut, arguments.out);
  }
  if (arguments.threads > 0) set_num_threads(arguments.threads);
  const Compared compared =
      arguments.text.empty() ? compare(tasks::shipped_text()) : compare(read_input(arguments.text));
  std::cout << (arguments.as_json ? compared.json.dump() + '\n' : for_stdout(compared.markdown));
  if (arguments.out.empty()) return;
  write_picture(files, kComparisonOut, arguments.out, picture_of_comparison(compared, theme));
  files.commit();
}

}  // namespace heed::cli
