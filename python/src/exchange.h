// PyTorch's tensors as arrays and back by DLPack's table of C functions: 0.2 µs a tensor, where
// `__dlpack__` and `from_dlpack`, which are functions of Python's, take 2.
//
// Source: DLPack 1.3, `__dlpack_c_exchange_api__`. PyTorch has it from 2.10 on.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstddef>
#include <optional>
#include <span>

namespace heed::python::exchange {

namespace nb = nanobind;

// Whether PyTorch has the table. Imports PyTorch, so a tensor should be at hand.
bool is_available();

// Where a tensor of PyTorch's lies in memory and how, until it changes or goes; nothing where there
// is no table, or DLPack has no words for the tensor.
std::optional<nb::dlpack::dltensor> look_at(nb::handle tensor);

// A tensor of PyTorch's as an array that keeps the tensor alive; nothing where there is no table,
// or DLPack has no words for the tensor.
std::optional<nb::ndarray<nb::ro, nb::device::cpu>> to_array(nb::handle tensor);

// Elements that belong to `owner`.
struct Elements {
  void* data;
  nb::dlpack::dtype type;
  std::span<const std::size_t> extents;  // row-major, at most kMaxRank of them
  void* owner;
  void (*destroy)(void* owner) noexcept;  // called by any thread, with or without the lock
};

// The elements as a tensor of PyTorch's, which owns them from now on. There must be a table.
nb::object to_tensor(const Elements& elements);

}  // namespace heed::python::exchange
