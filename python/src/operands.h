// Reads the caller's arrays, the first step of every binding of the operator, and the shapes that a
// plan is made for.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "arrays.h"
#include "heed/attention.h"
#include "heed/attention/plan.h"

namespace heed::python {

// Query, key and value of one type, with two to four dimensions. Leading dimensions that are
// missing in the query are missing in the result.
struct Operands {
  Array query, key, value;
  DataType dtype;
  Library library;
  int rank;  // of the query and the result
};

// @throws InvalidArgument if one is no array of floating-point numbers, types differ, or there are
// fewer than two dimensions. attention() checks whether the shapes fit.
Operands operands_of(const char* function, nb::handle query, nb::handle key, nb::handle value);

// Reads an array that must have the type `dtype`.
Array array_of_type(const char* function, const char* name, nb::handle object, DataType dtype);

// The results of attention that the caller kept.
struct Forward {
  Array out, lse;
  // Absent if the caller did not keep them.
  std::optional<Array> lse_low, out_low, kept;
};

// Reads (out, lse, lse_low, out_low) and optionally kept. All but the first two may be None, and
// out_low may be empty. They have the type of the query, `dtype`, except that lse, lse_low and kept
// are float32 for half precision.
// @throws InvalidArgument for any other type.
Forward forward_of(const char* function, const nb::tuple& made, DataType dtype);

// Returns (out, lse, lse_low, out_low). lse and lse_low have one dimension less than `rank`.
// out_low is None if there is none.
template <class T, class Lse>
nb::tuple to_objects(AttentionOutput<T, Lse>&& made, Library library, int rank) {
  const bool has_low = made.out_low.shape() != Shape{0};
  return nb::make_tuple(
      to_object(std::move(made.out), library, rank),
      to_object(std::move(made.lse), library, rank - 1),
      to_object(std::move(made.lse_low), library, rank - 1),
      has_low ? to_object(std::move(made.out_low), library, rank) : nb::object(nb::none()));
}

// The type in which the scores of operands T are computed.
template <class T>
using RealOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Calls use(T{}) with the type of the numbers.
template <class Use>
auto with_type(DataType dtype, Use use) {
  switch (dtype) {
    case DataType::kFloat16:
      return use(Float16{});
    case DataType::kBFloat16:
      return use(BFloat16{});
    case DataType::kFloat64:
      return use(double{});
    case DataType::kFloat32:
      break;
  }
  return use(float{});
}

// Takes the shapes, layouts and types of arrays, or tuples of extents with the type that `dtype`
// names.
// @throws InvalidArgument if there are more than four dimensions or `dtype` names no type.
AttentionShapes planned_shapes(const char* function, nb::handle query, nb::handle key,
                               nb::handle value, const std::string& dtype);

}  // namespace heed::python
