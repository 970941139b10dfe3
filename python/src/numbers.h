// Arguments that are converted to the type of the computation.
#pragma once

#include <fmt/format.h>
#include <nanobind/nanobind.h>

#include <optional>

#include "arrays.h"
#include "call.h"

namespace heed::python {

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
