// What every binding of the operator does first: read the caller's arrays.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <type_traits>
#include <utility>

#include "arrays.h"
#include "heed/attention.h"

namespace heed::python {

// Arrays of one type, the first of which is the query. They have two to four dimensions; those in
// front may be missing, and are then missing in what is returned.
struct Operands {
  Array query, key, value;
  DataType dtype;
  Library library;
  int rank;  // of the query, and of what is returned
};

// @throws InvalidArgument when one is no array of floating-point numbers, types differ, or there
// are fewer than two dimensions. Whether shapes fit is for attention to say.
Operands operands_of(const char* function, nb::handle query, nb::handle key, nb::handle value);

// An array that must have the type of others.
Array array_of_type(const char* function, const char* name, nb::handle object, DataType dtype);

// What attention made, as the caller kept it.
struct Forward {
  Array out, lse;
  // Nothing where the caller kept none.
  std::optional<Array> lse_low, out_low, kept;
};

// From (out, lse, lse_low, out_low) and perhaps kept, all but two of which may be None, as may an
// out_low without elements. All have the type of the query, `dtype`, but lse, lse_low and kept of
// half precision, which are float32.
// @throws InvalidArgument when one has another.
Forward forward_of(const char* function, const nb::tuple& made, DataType dtype);

// (out, lse, lse_low, out_low), of which lse and lse_low have a dimension less than `rank`. out_low
// is None where there is none.
template <class T, class Lse>
nb::tuple to_objects(AttentionOutput<T, Lse>&& made, Library library, int rank) {
  const bool has_low = made.out_low.shape() != Shape{0};
  return nb::make_tuple(
      to_object(std::move(made.out), library, rank),
      to_object(std::move(made.lse), library, rank - 1),
      to_object(std::move(made.lse_low), library, rank - 1),
      has_low ? to_object(std::move(made.out_low), library, rank) : nb::object(nb::none()));
}

// What scores of T are computed in.
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

}  // namespace heed::python
