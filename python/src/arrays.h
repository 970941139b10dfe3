// Arrays of the caller's as views, and tensors as arrays of the caller's kind. No element is copied
// but where a function says so.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "exchange.h"
#include "heed/core/data_type.h"
#include "heed/core/error.h"
#include "heed/core/half.h"
#include "heed/core/tensor.h"

// NOLINTBEGIN(readability-identifier-naming): the names are nanobind's
template <>
struct nanobind::detail::dtype_traits<heed::Float16> {
  static constexpr dlpack::dtype value{static_cast<std::uint8_t>(dlpack::dtype_code::Float), 16, 1};
  static constexpr auto name = const_name("float16");
};

template <>
struct nanobind::detail::dtype_traits<heed::BFloat16> {
  static constexpr dlpack::dtype value{static_cast<std::uint8_t>(dlpack::dtype_code::Bfloat), 16,
                                       1};
  static constexpr auto name = const_name("bfloat16");
};
// NOLINTEND(readability-identifier-naming)

namespace heed::python {

namespace nb = nanobind;

// An array that is only read: of any type and layout, in the processor's memory. It keeps its
// elements alive, and may be copied and destroyed only by who holds the interpreter's lock.
using Array = nb::ndarray<nb::ro, nb::device::cpu>;

// Who the caller got his arrays from, and gets the results from.
enum class Library : std::uint8_t { kNumpy, kTorch };
Library library_of(nb::handle object);

// The object as an array, through DLPack or else the buffer protocol.
// @throws InvalidArgument when it is none.
Array to_array(const char* function, const char* name, nb::handle object);

// What the usual tensor of PyTorch's is, at the first look and without a copy: of its own class, in
// the processor's memory, with elements, with rows that lie side by side, and nothing but its
// memory, for no gradient is wanted. Nothing where it is anything else. Imports PyTorch.
std::optional<nb::dlpack::dltensor> usual_tensor(nb::handle object);

// The type of floating-point numbers that attention reads, if it is one.
std::optional<DataType> float_type(nb::dlpack::dtype type);

// The same.
// @throws InvalidArgument when the array's is another.
DataType data_type_of(const char* function, const char* name, const Array& array);

// The array's type as text: "float32", "int64", "bool", …
std::string type_name(const Array& array);

Shape shape_of(const Array& array);

// A look at the array, whose type is known to be T.
template <class T>
TensorView<const T> view_of(const Array& array) {
  // NumPy and PyTorch give an array without elements any strides.
  if (array.size() == 0) return {nullptr, shape_of(array)};
  Strides strides{};
  for (std::size_t dim = 0; dim < array.ndim() && dim < strides.size(); ++dim) {
    strides[dim] = array.stride(dim);
  }
  const auto* bytes = static_cast<const std::byte*>(array.data_handle()) + array.byte_offset();
  return {reinterpret_cast<const T*>(bytes), shape_of(array), strides};
}

// The same with dimensions of 1 in front until there are four; more are left for attention() to
// complain of.
template <class T>
TensorView<const T> view_of_rank_4(const Array& array) {
  const TensorView<const T> view = view_of<T>(array);
  return view.rank() < 4 ? view.to_rank(4) : view;
}

// Numbers in the type that scores are computed in. Those of another type of floating-point numbers
// are copied; `copy` then owns them.
// @throws InvalidArgument when they are no floating-point numbers.
template <class Real>
TensorView<const Real> as_real(const char* function, const char* name, const Array& array,
                               std::optional<Tensor<Real>>& copy);

// The tensor, which the array takes over, as an array of the library. With a rank below the
// tensor's, the dimensions of 1 in front are dropped.
template <class T>
nb::object to_object(Tensor<T>&& tensor, Library library, int rank) {
  auto kept = std::make_unique<Tensor<T>>(std::move(tensor));
  std::array<std::size_t, kMaxRank> extents{};
  const int dropped = kept->rank() - rank;
  for (int dim = 0; dim < rank; ++dim) {
    extents[static_cast<std::size_t>(dim)] = static_cast<std::size_t>(kept->extent(dim + dropped));
  }
  T* data = kept->data();
  // An array without elements has no memory either, which NumPy and PyTorch would not accept.
  static T nothing{};
  T* elements = data == nullptr ? &nothing : data;
  const auto destroy = [](void* held) noexcept { delete static_cast<Tensor<T>*>(held); };
  const auto ndim = static_cast<std::size_t>(rank);
  if (library == Library::kTorch && exchange::is_available()) {
    return exchange::to_tensor({.data = elements,
                                .type = nb::dtype<T>(),
                                .extents = {extents.data(), ndim},
                                .owner = kept.release(),
                                .destroy = destroy});
  }
  nb::capsule owner(kept.release(), destroy);
  if (library == Library::kTorch) {
    return nb::cast(nb::ndarray<nb::pytorch, T>(elements, ndim, extents.data(), owner));
  }
  return nb::cast(nb::ndarray<nb::numpy, T>(elements, ndim, extents.data(), owner));
}

template <class T>
nb::object to_object(Tensor<T>&& tensor, Library library) {
  const int rank = tensor.rank();
  return to_object(std::move(tensor), library, rank);
}

}  // namespace heed::python
