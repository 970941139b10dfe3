#include "attention/request/request.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "attention/masks/query_offsets.h"

namespace heed { inline namespace v0 {

namespace {

void check_equal(const char* function, const char* name, std::int64_t found, const char* other,
                 std::int64_t expected) {
  if (found != expected) {
    throw InvalidArgument(
        fmt::format("{}: {} is {} but {} is {}", function, name, found, other, expected));
  }
}

// Refuses negative lengths and sizes.
void check_lengths(const char* function, const AttentionShapes& shapes) {
  const std::pair<const char*, std::int64_t> lengths[] = {{"batch", shapes.batch},
                                                          {"num_heads", shapes.num_heads},
                                                          {"num_kv_heads", shapes.num_kv_heads},
                                                          {"q_len", shapes.q_len},
                                                          {"kv_len", shapes.kv_len},
                                                          {"head_dim", shapes.head_dim},
                                                          {"value_dim", shapes.value_dim}};
  for (const auto& [name, length] : lengths) {
    if (length < 0) {
      throw InvalidArgument(
          fmt::format("{}: {} is {}, expected at least 0", function, name, length));
    }
  }
  check_heads(function, shapes);
}

template <class Real>
void check_numbers(const char* function, const BasicAttentionOptions<Real>& options) {
  if (options.scale && !std::isfinite(*options.scale)) {
    throw InvalidArgument(
        fmt::format("{}: scale is {}, expected a finite number", function, *options.scale));
  }
  const float probability = options.dropout.probability;
  if (!(probability >= 0 && probability <= 1)) {
    throw InvalidArgument(
        fmt::format("{}: dropout probability is {}, expected 0 to 1", function, probability));
  }
}

BoundMask bind(const char* function, const Mask& mask, const ScoreShape& shape) {
  try {
    return {mask, shape};
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("{}: {}", function, error.what()));
  }
}

}  // namespace

void check_heads(const char* function, const AttentionShapes& shapes) {
  if (shapes.num_kv_heads == 0 ? shapes.num_heads != 0
                               : shapes.num_heads % shapes.num_kv_heads != 0) {
    throw InvalidArgument(
        fmt::format("{}: num_heads is {}, expected a multiple of num_kv_heads, {}", function,
                    shapes.num_heads, shapes.num_kv_heads));
  }
}

template <class Q, class K, class V>
AttentionShapes check_shapes(const char* function, TensorView<const Q> query,
                             TensorView<const K> key, TensorView<const V> value) {
  check_layout(function, "query", query);
  check_layout(function, "key", key);
  check_layout(function, "value", value);
  check_equal(function, "key batch", key.extent(0), "query batch", query.extent(0));
  check_equal(function, "value batch", value.extent(0), "query batch", query.extent(0));
  check_equal(function, "value num_kv_heads", value.extent(1), "key num_kv_heads", key.extent(1));
  check_equal(function, "value kv_len", value.extent(2), "key kv_len", key.extent(2));
  check_equal(function, "key head_dim", key.extent(3), "query head_dim", query.extent(3));
  return {.batch = query.extent(0),
          .num_heads = query.extent(1),
          .num_kv_heads = key.extent(1),
          .q_len = query.extent(2),
          .kv_len = key.extent(2),
          .head_dim = query.extent(3),
          .value_dim = value.extent(3),
          .dtype = data_type_of<Q>(),
          .key_stride = key.stride(2),
          .value_stride = value.stride(2),
          .key_dtype = data_type_of<K>(),
          .value_dtype = data_type_of<V>()};
}

template <class T>
AttentionShapes check_shapes(const char* function, TensorView<const T> query,
                             TensorView<const T> key) {
  AttentionShapes shapes = check_shapes(function, query, key, key);
  shapes.value_dim = shapes.value_stride = 0;
  return shapes;
}

void check_rows(const char* function, std::span<const AttentionRow> rows, const ScoreShape& shape) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto check = [&](const char* name, std::int64_t index, std::int64_t extent) {
      if (index >= 0 && index < extent) return;
      throw InvalidArgument(fmt::format("{}: rows[{}].{} is {}, expected at least 0 and below {}",
                                        function, i, name, index, extent));
    };
    check("batch", rows[i].batch, shape.batch);
    check("head", rows[i].head, shape.num_heads);
    check("query", rows[i].query, shape.q_len);
  }
}

void check_statistics(const char* function, const StatisticsOptions& statistics) {
  if (statistics.top_k >= 0) return;
  throw InvalidArgument(
      fmt::format("{}: top_k is {}, expected at least 0", function, statistics.top_k));
}

// The position of query 0 among the keys. ALiBi and relative positions measure distances from
// there; without a query_offset, bottom_right gives it.
template <class Real>
QueryOffset first_position(const AttentionShapes& shapes,
                           const BasicAttentionOptions<Real>& options) {
  const bool has_distances =
      options.alibi_slopes || options.relative_bias || options.relative_vectors;
  if (!is_zero(options.query_offset) || !has_distances) return options.query_offset;
  const Alignment* alignment = detail::AllOf(options.mask).alignment();
  const bool at_end = alignment != nullptr && alignment->is_bottom_right();
  return at_end ? QueryOffset(shapes.kv_len - shapes.q_len) : options.query_offset;
}

template <class Real>
Request<Real> check_request(const char* function, const AttentionShapes& shapes,
                            const BasicAttentionOptions<Real>& options) {
  check_lengths(function, shapes);
  check_numbers(function, options);
  const ScoreShape scores{shapes.batch, shapes.num_heads, shapes.q_len, shapes.kv_len,
                          first_position(shapes, options)};
  check_count(function, scores);
  if (options.sinks) check_tensor(function, "sinks", *options.sinks, Shape{shapes.num_heads});
  return {
      .shape = shapes,
      // Without heads, key heads are not used, and the ratio does not matter.
      .heads_per_kv_head = shapes.num_heads == 0 ? 1 : shapes.num_heads / shapes.num_kv_heads,
      .scale = options.scale.value_or(default_scale<Real>(shapes.head_dim)),
      .terms = Terms<Real>({function, shapes, scores, options}),
      .sinks = options.sinks,
      .mask = bind(function, options.mask, scores),
      .dropout = DropoutMask(options.dropout),
      .precision = options.precision,
  };
}

template AttentionShapes check_shapes(const char*, FloatView, FloatView, FloatView);
template AttentionShapes check_shapes(const char*, DoubleView, DoubleView, DoubleView);
template AttentionShapes check_shapes(const char*, Float16View, Float16View, Float16View);
template AttentionShapes check_shapes(const char*, BFloat16View, BFloat16View, BFloat16View);
template AttentionShapes check_shapes(const char*, FloatView, Float16View, Float16View);
template AttentionShapes check_shapes(const char*, FloatView, BFloat16View, BFloat16View);
template AttentionShapes check_shapes(const char*, FloatView, FloatView);
template AttentionShapes check_shapes(const char*, DoubleView, DoubleView);
template AttentionShapes check_shapes(const char*, Float16View, Float16View);
template AttentionShapes check_shapes(const char*, BFloat16View, BFloat16View);
template Request<float> check_request(const char*, const AttentionShapes&, const AttentionOptions&);
template Request<double> check_request(const char*, const AttentionShapes&,
                                       const AttentionOptions64&);

}}  // namespace heed::v0
