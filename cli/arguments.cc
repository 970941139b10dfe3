#include "arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>

#include "core/closest_name.h"
#include "verbs.h"

namespace heed::cli {

namespace {

template <class T>
bool reads_whole(const std::string& text, T& number) {
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end;
}

template <class T>
std::string problem_with_integer(const std::string& text) {
  T number{};
  if (reads_whole(text, number)) return "";
  return fmt::format("'{}' is not a whole number from {} to {}", text,
                     std::numeric_limits<T>::min(), std::numeric_limits<T>::max());
}

}  // namespace

namespace detail {

template <>
std::string problem_with<std::string>(const std::string& text) {
  return text.empty() ? "the text is empty" : "";
}

template <>
std::string problem_with<double>(const std::string& text) {
  double number = 0;
  if (reads_whole(text, number) && std::isfinite(number)) return "";
  return fmt::format("'{}' is not a finite number", text);
}

template <>
std::string problem_with<int>(const std::string& text) {
  return problem_with_integer<int>(text);
}

template <>
std::string problem_with<long>(const std::string& text) {
  return problem_with_integer<long>(text);
}

template <>
std::string problem_with<unsigned long>(const std::string& text) {
  return problem_with_integer<unsigned long>(text);
}

std::vector<std::string> split_list(const std::string& list) {
  std::vector<std::string> parts{""};
  for (const char c : list) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

CLI::Validator one_of(std::vector<std::string> names) {
  const auto check = [names = std::move(names)](const std::string& given) -> std::string {
    const std::vector<std::string_view> known(names.begin(), names.end());
    if (std::ranges::find(known, given) != known.end()) return "";
    return fmt::format("'{}' is none of {}{}", given, fmt::join(names, ", "),
                       heed::detail::did_you_mean(given, known));
  };
  return {check, ""};
}

}  // namespace detail

CLI::Option* add_flag(CLI::App& verb, const std::string& name, bool& value,
                      const std::string& text) {
  return verb.add_flag(name, value, text)->disable_flag_override();
}

void check_flags(const CLI::App& command, int argc, char** argv) {
  const CLI::App* app = &command;
  for (int i = 1; i < argc && std::string_view(argv[i]) != "--"; ++i) {
    const std::string word = argv[i];
    const auto verbs =
        app->get_subcommands([&](const CLI::App* verb) { return verb->check_name(word); });
    if (!verbs.empty()) app = verbs.front();
    const bool has_no_value = word.ends_with('=');
    const std::string name = has_no_value ? word.substr(0, word.size() - 1) : word;
    const CLI::Option* option = app->get_option_no_throw(name);
    if (option == nullptr) continue;
    if (has_no_value && option->get_items_expected_max() == 0) {
      throw UsageError(fmt::format("{} takes no value, found '{}'", name, word));
    }
    // The values of an option are skipped, even where they look like flags.
    if (!has_no_value) i += option->get_items_expected_min();
  }
}

}  // namespace heed::cli
