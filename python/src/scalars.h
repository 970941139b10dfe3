// Reads numbers and texts from Python objects, with errors that name the argument.
#pragma once

#include <fmt/format.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "heed/core/error.h"

namespace heed::python {

namespace nb = nanobind;

// The Python type of a T, for errors.
template <class T>
constexpr const char* words_for() {
  if constexpr (std::same_as<T, bool>) return "True or False";
  if constexpr (std::unsigned_integral<T>) return "a whole number from 0 on";
  if constexpr (std::signed_integral<T>) return "a whole number";
  if constexpr (std::floating_point<T>) return "a number";
  if constexpr (std::same_as<T, std::string>) return "a str";
  if constexpr (std::same_as<T, std::vector<std::string>>) return "a list of str";
  return "a list of whole numbers";
}

// @throws InvalidArgument naming the argument if the object is no T.
template <class T>
T read_as(const char* function, const char* name, nb::handle object) {
  T value{};
  if (nb::try_cast(object, value)) return value;
  throw InvalidArgument(fmt::format("{}: {} is {}, expected {}", function, name,
                                    nb::repr(object).c_str(), words_for<T>()));
}

// Reads an argument that may be None.
template <class T>
std::optional<T> read_optional(const char* function, const char* name, nb::handle object) {
  if (object.is_none()) return std::nullopt;
  return read_as<T>(function, name, object);
}

}  // namespace heed::python
