// The caller's arrays as views, and tensors as arrays of the caller's library. Elements are copied
// only where a function says so.
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

// A read-only array of any type and layout in the processor's memory. It keeps its elements alive.
// Only the holder of the interpreter lock (GIL) may copy or destroy it.
using Array = nb::ndarray<nb::ro, nb::device::cpu>;

// The library of the caller's arrays, and of the results.
enum class Library : std::uint8_t { kNumpy, kTorch };
Library library_of(nb::handle object);

// The object as an array, through DLPack or otherwise the buffer protocol.
// @throws InvalidArgument if it is no array.
Array to_array(const char* function, const char* name, nb::handle object);

// Describes a usual PyTorch tensor quickly and without a copy: of class torch.Tensor itself, in the
// processor's memory, not empty, with contiguous rows, without pending operations, and without a
// gradient. Returns nothing for any other object. Imports PyTorch.
std::optional<nb::dlpack::dltensor> usual_tensor(nb::handle object);

// The floating-point type that attention reads; nothing for any other type.
std::optional<DataType> float_type(nb::dlpack::dtype type);

// The array's floating-point type.
// @throws InvalidArgument for any other type.
DataType data_type_of(const char* function, const char* name, const Array& array);

// The name of the array's type: "float32", "int64", "bool", …
std::string type_name(const Array& array);

Shape shape_of(const Array& array);

// A view of the array, whose type must be T.
template <class T>
TensorView<const T> view_of(const Array& array) {
  // NumPy and PyTorch give empty arrays arbitrary strides.
  if (array.size() == 0) return {nullptr, shape_of(array)};
  Strides strides{};
  for (std::size_t dim = 0; dim < array.ndim() && dim < strides.size(); ++dim) {
    strides[dim] = array.stride(dim);
  }
  const auto* bytes = static_cast<const std::byte*>(array.data_handle()) + array.byte_offset();
  return {reinterpret_cast<const T*>(bytes), shape_of(array), strides};
}

// A view with leading dimensions of 1 up to rank 4; attention() refuses higher ranks.
template <class T>
TensorView<const T> view_of_rank_4(const Array& array) {
  const TensorView<const T> view = view_of<T>(array);
  return view.rank() < 4 ? view.to_rank(4) : view;
}

// The numbers in the type that scores are computed in. Other floating-point types are converted;
// `copy` then owns the result.
// @throws InvalidArgument if the type is not floating-point.
template <class Real>
TensorView<const Real> as_real(const char* function, const char* name, const Array& array,
                               std::optional<Tensor<Real>>& copy);

// Converts a tensor, which the array takes over, to an array of the library. If `rank` is less than
// the tensor's, leading dimensions of 1 are dropped.
template <class T>
nb::object to_object(Tensor<T>&& tensor, Library library, int rank) {
  auto kept = std::make_unique<Tensor<T>>(std::move(tensor));
  std::array<std::size_t, kMaxRank> extents{};
  const int dropped = kept->rank() - rank;
  for (int dim = 0; dim < rank; ++dim) {
    extents[static_cast<std::size_t>(dim)] = static_cast<std::size_t>(kept->extent(dim + dropped));
  }
  T* data = kept->data();
  // NumPy and PyTorch do not accept null as the memory of an empty array.
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
