// Reads arguments: numbers and texts, with errors that name the argument, and arrays in the type of
// the computation.
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

#include "arrays.h"
#include "call.h"
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

// An array argument in the type of the computation, with the copy if one was needed.
template <class Real>
class Numbers {
 public:
  Numbers(const char* function, const char* name, nb::handle object)
      : array_(to_array(function, name, object)),
        view_(as_real<Real>(function, name, array_, copy_)) {}
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  const TensorView<const Real>& operator*() const { return view_; }

 private:
  Array array_;
  std::optional<Tensor<Real>> copy_;
  TensorView<const Real> view_;
};

// An array argument that may be None.
template <class Real>
class OptionalNumbers {
 public:
  OptionalNumbers(const char* function, const char* name, nb::handle object) {
    if (!object.is_none()) numbers_.emplace(function, name, object);
  }

  std::optional<TensorView<const Real>> operator*() const {
    if (!numbers_) return std::nullopt;
    return **numbers_;
  }

 private:
  std::optional<Numbers<Real>> numbers_;
};

// Calls use(Real{}) for computations that exist only for float and double.
template <class Use>
nb::object with_real(const char* function, const char* name, DataType dtype, Use use) {
  if (dtype == DataType::kFloat64) return use(double{});
  if (dtype == DataType::kFloat32) return use(float{});
  throw InvalidArgument(
      fmt::format("{}: {} is {}, expected float32 or float64", function, name, to_string(dtype)));
}

}  // namespace heed::python
