#include "arguments.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

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

}  // namespace detail

CLI::Option* add_flag(CLI::App& verb, const std::string& name, bool& value,
                      const std::string& text) {
  return verb.add_flag(name, value, text)->disable_flag_override();
}

}  // namespace heed::cli
