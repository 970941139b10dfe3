#include "attention/problem.h"

#include <fmt/format.h>

#include <cmath>

namespace heed::inline v0 {

namespace {

template <class T>
void check_layout(const char* function, const char* name, TensorView<const T> view) {
  if (view.rank() != 4) {
    throw InvalidArgument(
        fmt::format("{}: {} has shape {}, expected 4 dimensions [batch, heads, length, dim] "
                    "(view.to_rank(4) adds them)",
                    function, name, to_string(view.shape())));
  }
  if (view.extent(-1) > 1 && view.stride(-1) != 1) {
    throw InvalidArgument(fmt::format("{}: {} has stride {} in its innermost dimension, expected 1",
                                      function, name, view.stride(-1)));
  }
}

void check_equal(const char* function, const char* name, std::int64_t found, const char* other,
                 std::int64_t expected) {
  if (found != expected) {
    throw InvalidArgument(
        fmt::format("{}: {} is {} but {} is {}", function, name, found, other, expected));
  }
}

template <class Real>
void check_shapes(const char* function, TensorView<const Real> query, TensorView<const Real> key,
                  TensorView<const Real> value) {
  check_layout(function, "query", query);
  check_layout(function, "key", key);
  check_layout(function, "value", value);
  check_equal(function, "key batch", key.extent(0), "query batch", query.extent(0));
  check_equal(function, "value batch", value.extent(0), "query batch", query.extent(0));
  check_equal(function, "value num_kv_heads", value.extent(1), "key num_kv_heads", key.extent(1));
  check_equal(function, "value kv_len", value.extent(2), "key kv_len", key.extent(2));
  check_equal(function, "key head_dim", key.extent(3), "query head_dim", query.extent(3));
  const std::int64_t num_heads = query.extent(1);
  const std::int64_t num_kv_heads = key.extent(1);
  if (num_kv_heads == 0 ? num_heads != 0 : num_heads % num_kv_heads != 0) {
    throw InvalidArgument(
        fmt::format("{}: num_heads is {}, expected a multiple of num_kv_heads, {}", function,
                    num_heads, num_kv_heads));
  }
}

template <class Real>
void check_numbers(const char* function, const BasicAttentionOptions<Real>& options) {
  if (options.scale && !std::isfinite(*options.scale)) {
    throw InvalidArgument(
        fmt::format("{}: scale is {}, expected a finite number", function, *options.scale));
  }
  if (!std::isfinite(options.softcap) || options.softcap < 0) {
    throw InvalidArgument(fmt::format("{}: softcap is {}, expected 0 for none or a positive number",
                                      function, options.softcap));
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

template <class Real>
std::optional<TensorView<const Real>> broadcast_bias(
    const char* function, const std::optional<TensorView<const Real>>& bias, const Shape& scores) {
  if (!bias) return std::nullopt;
  try {
    return bias->broadcast_to(scores);
  } catch (const InvalidArgument&) {
    throw InvalidArgument(fmt::format(
        "{}: bias has shape {}, which does not broadcast to [batch, num_heads, q_len, kv_len] = {}",
        function, to_string(bias->shape()), to_string(scores)));
  }
}

}  // namespace

template <class Real>
void check_tensor(const char* function, const char* name, TensorView<const Real> view,
                  const Shape& expected) {
  if (view.shape() != expected) {
    throw InvalidArgument(fmt::format("{}: {} has shape {}, expected {}", function, name,
                                      to_string(view.shape()), to_string(expected)));
  }
  if (expected.rank() == 4) check_layout(function, name, view);
}

template <class Real>
Problem<Real> check_attention(const char* function, TensorView<const Real> query,
                              TensorView<const Real> key, TensorView<const Real> value,
                              const BasicAttentionOptions<Real>& options) {
  check_shapes(function, query, key, value);
  check_numbers(function, options);
  const ScoreShape shape{query.extent(0), query.extent(1), query.extent(2), key.extent(2),
                         options.query_offset};
  const Shape scores{shape.batch, shape.num_heads, shape.q_len, shape.kv_len};
  if (options.sinks) check_tensor(function, "sinks", *options.sinks, Shape{shape.num_heads});
  const std::int64_t head_dim = query.extent(3);
  const Real default_scale = head_dim == 0 ? Real{1} : 1 / std::sqrt(static_cast<Real>(head_dim));
  return Problem<Real>{
      .query = query,
      .key = key,
      .value = value,
      .shape = shape,
      .head_dim = head_dim,
      .value_dim = value.extent(3),
      .heads_per_kv_head = key.extent(1) == 0 ? 1 : query.extent(1) / key.extent(1),
      .scale = options.scale.value_or(default_scale),
      .softcap = options.softcap,
      .score_mod = options.score_mod,
      .bias = broadcast_bias(function, options.bias, scores),
      .sinks = options.sinks,
      .mask = bind(function, options.mask, shape),
      .dropout = DropoutMask(options.dropout),
  };
}

template Problem<float> check_attention(const char*, FloatView, FloatView, FloatView,
                                        const AttentionOptions&);
template Problem<double> check_attention(const char*, DoubleView, DoubleView, DoubleView,
                                         const AttentionOptions64&);
template void check_tensor(const char*, const char*, FloatView, const Shape&);
template void check_tensor(const char*, const char*, DoubleView, const Shape&);

}  // namespace heed::inline v0
