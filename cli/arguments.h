// Adds the command's options with strict reading: a number is decimal only, fits in its type and is
// finite; a text has at least one character. CLI11's own reading takes "" for 0, −1 for
// 18446744073709551615 and 0x10 for 16. Every option is added by these functions; a test checks all
// of them.
#pragma once

#include <CLI/App.hpp>
#include <initializer_list>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace heed::cli {

namespace detail {

// The type that is read from one word: the element type of an optional or a vector, else T.
template <class T>
struct Element {
  using Type = T;
};
template <class T>
struct Element<std::optional<T>> {
  using Type = T;
};
template <class T>
struct Element<std::vector<T>> {
  using Type = T;
};

// Returns what is wrong with `text` as a T; empty when it is valid. T is std::string, double or one
// of the integers below.
template <class T>
std::string problem_with(const std::string& text);
template <>
std::string problem_with<std::string>(const std::string& text);
template <>
std::string problem_with<double>(const std::string& text);
template <>
std::string problem_with<int>(const std::string& text);
template <>
std::string problem_with<long>(const std::string& text);
template <>
std::string problem_with<unsigned long>(const std::string& text);

template <class T>
constexpr const char* type_name() {
  return std::is_integral_v<T> ? "N" : std::is_floating_point_v<T> ? "NUMBER" : "TEXT";
}

std::vector<std::string> split_list(const std::string& list);

CLI::Validator one_of(std::vector<std::string> names);

}  // namespace detail

// Returns the check of an option that takes one of `names`, the keys of a map or a list of texts.
// Its message lists the names and suggests the nearest one.
template <class Names>
CLI::Validator one_of(const Names& names) {
  std::vector<std::string> list;
  for (const auto& name : names) {
    if constexpr (requires { name.first; }) {
      list.emplace_back(name.first);
    } else {
      list.emplace_back(name);
    }
  }
  return detail::one_of(std::move(list));
}
inline CLI::Validator one_of(std::initializer_list<const char*> names) {
  return detail::one_of({names.begin(), names.end()});
}

// Adds an option that takes a value. Without leading dashes in `name` it is a positional argument,
// which may be the empty text. `value` is an integer, a double, a text, or an optional or vector of
// these.
template <class T>
CLI::Option* add_option(CLI::App& verb, const std::string& name, T& value,
                        const std::string& text) {
  using Type = typename detail::Element<T>::Type;
  CLI::Option* option = verb.add_option(name, value, text)->type_name(detail::type_name<Type>());
  if (!option->get_positional()) {
    option->check([](const std::string& given) { return detail::problem_with<Type>(given); }, "");
  }
  return option;
}

// Adds an option that takes a list joined by commas; each part must pass `check`.
template <class T>
CLI::Option* add_list(CLI::App& verb, const std::string& name, std::vector<T>& values,
                      const CLI::Validator& check, const std::string& text) {
  const auto read = [&values, name, check](const std::string& list) {
    values.clear();
    for (std::string& part : detail::split_list(list)) {
      std::string problem = detail::problem_with<T>(part);
      if (problem.empty()) problem = check(part);
      if (!problem.empty()) throw CLI::ValidationError(name, problem);
      CLI::detail::lexical_cast(part, values.emplace_back());
    }
  };
  return verb.add_option_function<std::string>(name, read, text)->type_name(detail::type_name<T>());
}

// Adds an option that takes no value, not by an equals sign either.
CLI::Option* add_flag(CLI::App& verb, const std::string& name, bool& value,
                      const std::string& text);

// Throws UsageError where a flag is given an empty value, `--json=`, which CLI11 does not
// distinguish from `--json`. Call it with the argv of main() before CLI11 parses.
void check_flags(const CLI::App& command, int argc, char** argv);

}  // namespace heed::cli
