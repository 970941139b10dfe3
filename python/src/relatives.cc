// The relatives of attention: rotary embeddings, linear attention, feature maps, and attention with
// functions of whole matrices.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "bindings.h"
#include "heed/linear_attention.h"
#include "heed/reference.h"
#include "heed/rotary.h"
#include "operands.h"

namespace heed::python {

namespace {

// compute() without the interpreter's lock: it must touch no Python object.
template <class Compute>
auto without_lock(Compute compute) {
  const nb::gil_scoped_release released;
  return compute();
}

// An optional argument as numbers of the type that is computed in, and what they are copied into.
template <class Real>
class OptionalNumbers {
 public:
  OptionalNumbers(const char* function, const char* name, nb::handle object) {
    if (object.is_none()) return;
    array_ = to_array(function, name, object);
    view_ = as_real<Real>(function, name, *array_, copy_);
  }
  OptionalNumbers(const OptionalNumbers&) = delete;
  OptionalNumbers& operator=(const OptionalNumbers&) = delete;

  const std::optional<TensorView<const Real>>& operator*() const { return view_; }

 private:
  std::optional<Array> array_;
  std::optional<Tensor<Real>> copy_;
  std::optional<TensorView<const Real>> view_;
};

nb::object rotary(nb::handle x, nb::handle cos, nb::handle sin, nb::handle position_ids,
                  bool interleaved, std::optional<std::int64_t> rotary_dim, std::int64_t offset,
                  std::optional<std::int64_t> num_heads) {
  constexpr const char* kFunction = "rotary_embedding";
  const Array input = to_array(kFunction, "x", x);
  RotaryOptions options{.interleaved = interleaved,
                        .rotary_dim = rotary_dim,
                        .position_ids = std::nullopt,
                        .offset = offset,
                        .num_heads = num_heads};
  std::optional<Array> ids;
  if (!position_ids.is_none()) {
    ids = to_array(kFunction, "position_ids", position_ids);
    if (ids->dtype() != nb::dtype<std::int64_t>()) {
      throw InvalidArgument(
          fmt::format("{}: position_ids is {}, expected int64", kFunction, type_name(*ids)));
    }
    options.position_ids = view_of<std::int64_t>(*ids);
  }
  return with_type(data_type_of(kFunction, "x", input), [&](auto number) {
    using T = decltype(number);
    using Real = RealOf<T>;
    const OptionalNumbers<Real> cosines(kFunction, "cos", cos);
    const OptionalNumbers<Real> sines(kFunction, "sin", sin);
    auto result = without_lock([&] {
      return rotary_embedding(view_of<T>(input), (*cosines).value(), (*sines).value(), options);
    });
    return to_object(std::move(result), library_of(x));
  });
}

template <class T, class Compute>
nb::object linear_of(const char* function, const Operands& operands, const nb::tuple& extras,
                     std::optional<double> scale, Compute compute) {
  using Real = RealOf<T>;
  const OptionalNumbers<Real> decay(function, "decay", extras[0]);
  const OptionalNumbers<Real> beta(function, "beta", extras[1]);
  const OptionalNumbers<Real> state(function, "state", extras[2]);
  BasicLinearAttentionOptions<Real> options{*decay, *beta, *state, std::nullopt};
  if (scale) options.scale = static_cast<Real>(*scale);
  auto result = without_lock([&] {
    return compute(view_of<T>(operands.query), view_of<T>(operands.key), view_of<T>(operands.value),
                   options);
  });
  return nb::make_tuple(to_object(std::move(result.out), operands.library),
                        to_object(std::move(result.state), operands.library));
}

nb::object linear(nb::handle query, nb::handle key, nb::handle value, nb::handle decay,
                  nb::handle beta, nb::handle state, std::optional<double> scale) {
  constexpr const char* kFunction = "linear_attention";
  const Operands operands = operands_of(kFunction, query, key, value);
  return with_type(operands.dtype, [&](auto number) {
    return linear_of<decltype(number)>(
        kFunction, operands, nb::make_tuple(decay, beta, state), scale,
        [](const auto&... arguments) { return linear_attention(arguments...); });
  });
}

// The references compute in float and double alone.
template <class Use>
nb::object with_real(const char* function, DataType dtype, Use use) {
  if (dtype == DataType::kFloat64) return use(double{});
  if (dtype == DataType::kFloat32) return use(float{});
  throw InvalidArgument(
      fmt::format("{}: query is {}, expected float32 or float64", function, to_string(dtype)));
}

nb::object linear_by_reference(nb::handle query, nb::handle key, nb::handle value, nb::handle decay,
                               nb::handle beta, nb::handle state, std::optional<double> scale) {
  constexpr const char* kFunction = "reference.linear_attention";
  const Operands operands = operands_of(kFunction, query, key, value);
  return with_real(kFunction, operands.dtype, [&](auto number) {
    return linear_of<decltype(number)>(
        kFunction, operands, nb::make_tuple(decay, beta, state), scale,
        [](const auto&... arguments) { return reference::linear_attention(arguments...); });
  });
}

nb::object feature_map(nb::handle query, nb::handle key, nb::handle value, const std::string& map,
                       bool causal, bool normalized) {
  constexpr const char* kFunction = "feature_map_attention";
  FeatureMapOptions options{
      .feature_map = FeatureMap::kEluPlusOne, .causal = causal, .normalized = normalized};
  if (map == "relu") {
    options.feature_map = FeatureMap::kRelu;
  } else if (map != "elu+1") {
    throw InvalidArgument(
        fmt::format("{}: feature_map is \"{}\", expected \"elu+1\" or \"relu\"", kFunction, map));
  }
  const Operands operands = operands_of(kFunction, query, key, value);
  return with_real(kFunction, operands.dtype, [&](auto number) {
    using T = decltype(number);
    auto result = without_lock([&] {
      return feature_map_attention(view_of<T>(operands.query), view_of<T>(operands.key),
                                   view_of<T>(operands.value), options);
    });
    return to_object(std::move(result), operands.library);
  });
}

// A function of Python's that is given a matrix as a NumPy array and returns another of its shape.
template <class Real>
std::function<void(TensorView<Real>)> matrix_function(const char* name,
                                                      const nb::object& function) {
  if (function.is_none()) return {};
  return [name, function](TensorView<Real> matrix) {
    const nb::object given = to_object(to_tensor(TensorView<const Real>(matrix)), Library::kNumpy);
    const nb::object returned = function(given);
    const Array array = to_array("reference.flex_attention", name, returned);
    if (shape_of(array) != matrix.shape()) {
      throw InvalidArgument(fmt::format("reference.flex_attention: {} returned shape {} for {}",
                                        name, to_string(shape_of(array)),
                                        to_string(matrix.shape())));
    }
    std::optional<Tensor<Real>> copy;
    const auto numbers = as_real<Real>("reference.flex_attention", name, array, copy);
    Real* out = matrix.data();
    for_each_element(numbers, [&out](const Real& number) { *out++ = number; });
  };
}

nb::object flex(nb::handle query, nb::handle key, nb::handle value, const nb::object& score_mod,
                const nb::object& prob_mod, std::optional<double> scale) {
  constexpr const char* kFunction = "reference.flex_attention";
  const Operands operands = operands_of(kFunction, query, key, value);
  return with_real(kFunction, operands.dtype, [&](auto number) {
    using T = decltype(number);
    reference::FlexOptions<T> options{matrix_function<T>("score_mod", score_mod),
                                      matrix_function<T>("prob_mod", prob_mod), std::nullopt};
    if (scale) options.scale = static_cast<T>(*scale);
    return to_object(reference::flex_attention(view_of<T>(operands.query), view_of<T>(operands.key),
                                               view_of<T>(operands.value), options),
                     operands.library);
  });
}

}  // namespace

void bind_relatives(nb::module_& module) {
  module.def("rotary_embedding", &rotary, nb::arg("x").none(), nb::arg("cos").none(),
             nb::arg("sin").none(), nb::kw_only(), nb::arg("position_ids") = nb::none(),
             nb::arg("interleaved") = false, nb::arg("rotary_dim") = nb::none(),
             nb::arg("offset") = 0, nb::arg("num_heads") = nb::none(),
             "x [batch, num_heads, length, head_dim], or [batch, length, num_heads * head_dim] "
             "with num_heads, with pairs of its first rotary_dim dimensions turned. cos and sin "
             "are [max_len, rotary_dim / 2], whose rows position_ids (int64 [batch, length]) or "
             "offset choose, or [batch, length, rotary_dim / 2].");
  module.def("linear_attention", &linear, nb::arg("query").none(), nb::arg("key").none(),
             nb::arg("value").none(), nb::kw_only(), nb::arg("decay") = nb::none(),
             nb::arg("beta") = nb::none(), nb::arg("state") = nb::none(),
             nb::arg("scale") = nb::none(),
             "(out, state) of the recurrence S = exp(decay) S + k v, out = scale S q; with beta, "
             "the delta rule. query [batch, num_heads, length, head_dim], key and value "
             "[batch, num_kv_heads, length, ...], decay [batch, num_kv_heads, length, head_dim or "
             "1], beta [batch, num_kv_heads, length], state [batch, num_kv_heads, head_dim, "
             "value_dim].");
  module.def("reference_linear_attention", &linear_by_reference, nb::arg("query").none(),
             nb::arg("key").none(), nb::arg("value").none(), nb::kw_only(),
             nb::arg("decay") = nb::none(), nb::arg("beta") = nb::none(),
             nb::arg("state") = nb::none(), nb::arg("scale") = nb::none());
  module.def("feature_map_attention", &feature_map, nb::arg("query").none(), nb::arg("key").none(),
             nb::arg("value").none(), nb::kw_only(), nb::arg("feature_map") = "elu+1",
             nb::arg("causal") = false, nb::arg("normalized") = true,
             "Attention in linear time whose weights are products of features, \"elu+1\" or "
             "\"relu\", of query and key; float32 or float64.");
  module.def("reference_flex_attention", &flex, nb::arg("query").none(), nb::arg("key").none(),
             nb::arg("value").none(), nb::kw_only(), nb::arg("score_mod") = nb::none(),
             nb::arg("prob_mod") = nb::none(), nb::arg("scale") = nb::none());
}

}  // namespace heed::python
