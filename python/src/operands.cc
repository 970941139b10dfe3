#include "operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace heed::python {

Array array_of_type(const char* function, const char* name, nb::handle object, DataType dtype) {
  Array array = to_array(function, name, object);
  const DataType found = data_type_of(function, name, array);
  if (found != dtype) {
    throw InvalidArgument(fmt::format("{}: {} is {}, expected {} as the query", function, name,
                                      to_string(found), to_string(dtype)));
  }
  return array;
}

Operands operands_of(const char* function, nb::handle query, nb::handle key, nb::handle value) {
  Array first = to_array(function, "query", query);
  const DataType dtype = data_type_of(function, "query", first);
  const auto rank = static_cast<int>(first.ndim());
  if (rank < 2) {
    throw InvalidArgument(
        fmt::format("{}: query has shape {}, expected at least 2 dimensions [length, dim]",
                    function, to_string(shape_of(first))));
  }
  return {.query = first,
          .key = array_of_type(function, "key", key, dtype),
          .value = value.is_valid() ? array_of_type(function, "value", value, dtype) : Array{},
          .dtype = dtype,
          .library = library_of(query),
          .rank = std::min(rank, 4)};
}

Forward forward_of(const char* function, const nb::tuple& made, DataType dtype) {
  const auto type_of_lse = dtype == DataType::kFloat64 ? DataType::kFloat64 : DataType::kFloat32;
  Forward forward{.out = array_of_type(function, "out", made[0], dtype),
                  .lse = array_of_type(function, "lse", made[1], type_of_lse),
                  .lse_low = {},
                  .out_low = {},
                  .kept = {}};
  if (!made[2].is_none()) {
    forward.lse_low = array_of_type(function, "lse_low", made[2], type_of_lse);
  }
  if (!made[3].is_none()) forward.out_low = array_of_type(function, "out_low", made[3], dtype);
  if (made.size() > 4 && !made[4].is_none()) {
    forward.kept = array_of_type(function, "kept", made[4], type_of_lse);
  }
  return forward;
}

}  // namespace heed::python
