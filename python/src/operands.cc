#include "operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "arrays.h"

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

namespace {

// Shape and layout of a future argument of attention, from an array or from a tuple of extents.
struct Planned {
  Shape shape;                    // [batch, heads, length, dim]
  std::int64_t stride = 0;        // from one key to the next; 0 without gaps
  std::optional<DataType> dtype;  // of an array
};

Shape to_rank_4(const Shape& shape) {
  const float* no_elements = nullptr;
  return shape.rank() < 4 ? FloatView(no_elements, shape).to_rank(4).shape() : shape;
}

Planned planned(const char* function, const char* name, nb::handle object) {
  if (nb::isinstance<nb::tuple>(object) || nb::isinstance<nb::list>(object)) {
    std::vector<std::int64_t> extents;
    for (const nb::handle extent : object) {
      if (nb::try_cast(extent, extents.emplace_back())) continue;
      throw InvalidArgument(fmt::format("{}: {}[{}] is {}, expected a whole number", function, name,
                                        extents.size() - 1, nb::repr(extent).c_str()));
    }
    return {.shape = to_rank_4(Shape(extents)), .dtype = {}};
  }
  const Array array = to_array(function, name, object);
  const TensorView<const char> view = view_of_rank_4<char>(array);
  return {.shape = view.shape(),
          .stride = view.rank() == 4 ? view.stride(2) : 0,
          .dtype = data_type_of(function, name, array)};
}

void check_planned_rank(const char* function, const char* name, const Shape& shape) {
  if (shape.rank() == 4) return;
  throw InvalidArgument(
      fmt::format("{}: {} has shape {}, expected at most 4 dimensions [batch, "
                  "heads, length, dim]",
                  function, name, to_string(shape)));
}

DataType data_type_named(const char* function, const std::string& name) {
  for (const DataType type :
       {DataType::kFloat32, DataType::kFloat64, DataType::kFloat16, DataType::kBFloat16}) {
    if (name == to_string(type)) return type;
  }
  throw InvalidArgument(fmt::format(
      "{}: dtype is \"{}\", expected float32, float64, float16 or bfloat16", function, name));
}

}  // namespace

AttentionShapes planned_shapes(const char* function, nb::handle query, nb::handle key,
                               nb::handle value, const std::string& dtype) {
  const Planned q = planned(function, "query", query);
  const Planned k = planned(function, "key", key);
  const Planned v = planned(function, "value", value);
  check_planned_rank(function, "query", q.shape);
  check_planned_rank(function, "key", k.shape);
  check_planned_rank(function, "value", v.shape);
  return {.batch = q.shape[0],
          .num_heads = q.shape[1],
          .num_kv_heads = k.shape[1],
          .q_len = q.shape[2],
          .kv_len = k.shape[2],
          .head_dim = q.shape[3],
          .value_dim = v.shape[3],
          .dtype = q.dtype ? *q.dtype : data_type_named(function, dtype),
          .key_stride = k.stride,
          .value_stride = v.stride};
}

}  // namespace heed::python
