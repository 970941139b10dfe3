#include "planned_shapes.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "arrays.h"

namespace heed::python {

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
