#include "attention/request/linear_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "attention/request/request.h"

namespace heed { inline namespace v0 { namespace recurrent {

namespace {

template <class Real>
TensorView<const Real> broadcast(const char* function, const char* name,
                                 TensorView<const Real> view, const Shape& shape) {
  try {
    return view.broadcast_to(shape);
  } catch (const InvalidArgument&) {
    throw InvalidArgument(fmt::format("{}: {} has shape {}, which does not broadcast to {}",
                                      function, name, to_string(view.shape()), to_string(shape)));
  }
}

// True if there are more heads of values than of keys, a multiple of them: each key head then
// belongs to as many value heads.
template <class T>
bool has_multiple_of_heads(TensorView<const T> key, TensorView<const T> value) {
  return key.rank() == 4 && value.rank() == 4 && key.extent(1) > 0 &&
         value.extent(1) > key.extent(1) && value.extent(1) % key.extent(1) == 0;
}

}  // namespace

template <class T>
Sizes check_sizes(const char* function, TensorView<const T> query, TensorView<const T> key,
                  TensorView<const T> value) {
  // Everything but the number of value heads must fit as in attention.
  const bool shares_keys = has_multiple_of_heads(key, value);
  const AttentionShapes shapes =
      check_shapes(function, query, key, shares_keys ? value.slice(1, 0, key.extent(1)) : value);
  if (shapes.q_len != shapes.kv_len) {
    throw InvalidArgument(fmt::format("{}: query has {} tokens but key {}; a token is both",
                                      function, shapes.q_len, shapes.kv_len));
  }
  check_heads(function, shapes);
  const std::int64_t values = value.extent(1);
  const std::int64_t heads = shapes.num_heads == 0 ? 0 : std::max(shapes.num_heads, values);
  if (values > 0 && heads > 0 && (heads % values != 0 || heads % shapes.num_heads != 0)) {
    throw InvalidArgument(
        fmt::format("{}: query has {} heads and value {}, expected one to be a multiple of the "
                    "other",
                    function, shapes.num_heads, values));
  }
  const auto ratio = [](std::int64_t a, std::int64_t b) { return b == 0 ? 1 : a / b; };
  return {.batch = shapes.batch,
          .num_heads = heads,
          .num_kv_heads = values,
          .length = shapes.q_len,
          .head_dim = shapes.head_dim,
          .value_dim = shapes.value_dim,
          .heads_per_kv_head = values == 0 ? 0 : heads / values,
          .states_per_key = ratio(values, shapes.num_kv_heads),
          .states_per_query = ratio(heads, shapes.num_heads)};
}

template <class Real>
Terms<Real> check_terms(const char* function, const Sizes& sizes,
                        const BasicLinearAttentionOptions<Real>& options) {
  if (options.scale && !std::isfinite(*options.scale)) {
    throw InvalidArgument(
        fmt::format("{}: scale is {}, expected a finite number", function, *options.scale));
  }
  const Real default_scale =
      sizes.head_dim == 0 ? Real{1} : 1 / std::sqrt(static_cast<Real>(sizes.head_dim));
  Terms<Real> terms{options.scale.value_or(default_scale), {}, {}, options.state};
  const Shape tokens{sizes.batch, sizes.num_kv_heads, sizes.length};
  if (options.decay) {
    terms.decay = broadcast(function, "decay", *options.decay,
                            Shape{sizes.batch, sizes.num_kv_heads, sizes.length, sizes.head_dim});
    const std::int64_t step = terms.decay->stride(-1);
    if (sizes.head_dim > 1 && step != 0 && step != 1) {
      throw InvalidArgument(fmt::format(
          "{}: decay has stride {} in its innermost dimension, expected 1", function, step));
    }
  }
  if (options.beta) terms.beta = broadcast(function, "beta", *options.beta, tokens);
  if (options.state) check_tensor(function, "state", *options.state, sizes.state());
  return terms;
}

template <class Real>
AttentionShapes check_feature_map(const char* function, TensorView<const Real> query,
                                  TensorView<const Real> key, TensorView<const Real> value,
                                  const FeatureMapOptions& options) {
  const AttentionShapes shapes = check_shapes(function, query, key, value);
  check_heads(function, shapes);
  if (options.causal && shapes.q_len != shapes.kv_len) {
    throw InvalidArgument(
        fmt::format("{}: causal: q_len is {} but kv_len is {}; expected as many queries as keys",
                    function, shapes.q_len, shapes.kv_len));
  }
  return shapes;
}

template AttentionShapes check_feature_map(const char*, FloatView, FloatView, FloatView,
                                           const FeatureMapOptions&);
template AttentionShapes check_feature_map(const char*, DoubleView, DoubleView, DoubleView,
                                           const FeatureMapOptions&);
template Sizes check_sizes(const char*, FloatView, FloatView, FloatView);
template Sizes check_sizes(const char*, DoubleView, DoubleView, DoubleView);
template Sizes check_sizes(const char*, Float16View, Float16View, Float16View);
template Sizes check_sizes(const char*, BFloat16View, BFloat16View, BFloat16View);
template Terms<float> check_terms(const char*, const Sizes&, const LinearAttentionOptions&);
template Terms<double> check_terms(const char*, const Sizes&, const LinearAttentionOptions64&);

}}}  // namespace heed::v0::recurrent
