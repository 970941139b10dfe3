// Exchanges PyTorch tensors and arrays through DLPack's table of C functions: 0.2 µs per tensor,
// where `__dlpack__` and `from_dlpack`, which are Python functions, take 2 µs.
//
// Source: DLPack 1.3, `__dlpack_c_exchange_api__`. PyTorch has it since 2.10.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <optional>
#include <span>

namespace heed::python::exchange {

namespace nb = nanobind;

// True if PyTorch has the table. Imports PyTorch.
bool is_available();

// The memory and layout of a PyTorch tensor, valid until it changes or is destroyed; nothing if
// there is no table or DLPack cannot describe the tensor.
std::optional<nb::dlpack::dltensor> look_at(nb::handle tensor);

// A PyTorch tensor as an array that keeps the tensor alive; nothing if there is no table or DLPack
// cannot describe the tensor.
std::optional<nb::ndarray<nb::ro, nb::device::cpu>> to_array(nb::handle tensor);

// Elements that belong to `owner`.
struct Elements {
  void* data;
  nb::dlpack::dtype type;
  std::span<const std::size_t> extents;  // row-major, at most kMaxRank of them
  void* owner;
  void (*destroy)(void* owner) noexcept;  // called by any thread, with or without the GIL
};

// The elements as a PyTorch tensor, which takes ownership of them. The table must be available.
nb::object to_tensor(const Elements& elements);

}  // namespace heed::python::exchange
