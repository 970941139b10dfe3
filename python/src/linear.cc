// Linear attention and attention by feature maps, forward and backward.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>
#include <string>
#include <utility>

#include "bindings.h"
#include "heed/attention/linear_attention.h"
#include "heed/attention/reference.h"
#include "operands.h"
#include "readers.h"

namespace heed::python {

namespace {

// decay, beta, state and the scale, in the library's types.
template <class Real>
class LinearOptions {
 public:
  LinearOptions(const char* function, const nb::tuple& extras, std::optional<double> scale)
      : decay_(function, "decay", extras[0]),
        beta_(function, "beta", extras[1]),
        state_(function, "state", extras[2]),
        options_{*decay_, *beta_, *state_, std::nullopt} {
    if (scale) options_.scale = static_cast<Real>(*scale);
  }

  const BasicLinearAttentionOptions<Real>& operator*() const { return options_; }

 private:
  OptionalNumbers<Real> decay_;
  OptionalNumbers<Real> beta_;
  OptionalNumbers<Real> state_;
  BasicLinearAttentionOptions<Real> options_;
};

template <class T, class Compute>
nb::object linear_of(const char* function, const Operands& operands, const nb::tuple& extras,
                     std::optional<double> scale, Compute compute) {
  using Real = RealOf<T>;
  const LinearOptions<Real> options(function, extras, scale);
  auto result = without_lock([&] {
    return compute(view_of<T>(operands.query), view_of<T>(operands.key), view_of<T>(operands.value),
                   *options);
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

nb::object linear_by_reference(nb::handle query, nb::handle key, nb::handle value, nb::handle decay,
                               nb::handle beta, nb::handle state, std::optional<double> scale) {
  constexpr const char* kFunction = "reference.linear_attention";
  const Operands operands = operands_of(kFunction, query, key, value);
  return with_real(kFunction, "query", operands.dtype, [&](auto number) {
    return linear_of<decltype(number)>(
        kFunction, operands, nb::make_tuple(decay, beta, state), scale,
        [](const auto&... arguments) { return reference::linear_attention(arguments...); });
  });
}

nb::object linear_backward(nb::handle grad_out, nb::handle query, nb::handle key, nb::handle value,
                           nb::handle grad_state, const nb::tuple& extras,
                           std::optional<double> scale) {
  constexpr const char* kFunction = "linear_attention_backward";
  const Operands operands = operands_of(kFunction, query, key, value);
  return with_real(kFunction, "query", operands.dtype, [&](auto number) {
    using Real = decltype(number);
    const LinearOptions<Real> options(kFunction, extras, scale);
    const Array grads = array_of_type(kFunction, "grad_out", grad_out, operands.dtype);
    const OptionalNumbers<Real> grad_states(kFunction, "grad_state", grad_state);
    auto found = without_lock([&] {
      return linear_attention_backward({view_of<Real>(grads), *grad_states},
                                       view_of<Real>(operands.query), view_of<Real>(operands.key),
                                       view_of<Real>(operands.value), *options);
    });
    const auto object = [&](Tensor<Real>& tensor, bool is_wanted) -> nb::object {
      if (!is_wanted) return nb::none();
      return to_object(std::move(tensor), operands.library);
    };
    return nb::make_tuple(object(found.query, true), object(found.key, true),
                          object(found.value, true), object(found.decay, !extras[0].is_none()),
                          object(found.beta, !extras[1].is_none()), object(found.state, true));
  });
}

FeatureMapOptions feature_map_options(const char* function, const std::string& map, bool causal,
                                      bool normalized) {
  FeatureMapOptions options{
      .feature_map = FeatureMap::kEluPlusOne, .causal = causal, .normalized = normalized};
  if (map == "relu") {
    options.feature_map = FeatureMap::kRelu;
  } else if (map != "elu+1") {
    throw InvalidArgument(
        fmt::format("{}: feature_map is \"{}\", expected \"elu+1\" or \"relu\"", function, map));
  }
  return options;
}

nb::object feature_map(nb::handle query, nb::handle key, nb::handle value, const std::string& map,
                       bool causal, bool normalized) {
  constexpr const char* kFunction = "feature_map_attention";
  const FeatureMapOptions options = feature_map_options(kFunction, map, causal, normalized);
  const Operands operands = operands_of(kFunction, query, key, value);
  return with_real(kFunction, "query", operands.dtype, [&](auto number) {
    using T = decltype(number);
    auto result = without_lock([&] {
      return feature_map_attention(view_of<T>(operands.query), view_of<T>(operands.key),
                                   view_of<T>(operands.value), options);
    });
    return to_object(std::move(result), operands.library);
  });
}

nb::object feature_map_backward(nb::handle grad_out, nb::handle query, nb::handle key,
                                nb::handle value, const std::string& map, bool causal,
                                bool normalized) {
  constexpr const char* kFunction = "feature_map_attention_backward";
  const FeatureMapOptions options = feature_map_options(kFunction, map, causal, normalized);
  const Operands operands = operands_of(kFunction, query, key, value);
  return with_real(kFunction, "query", operands.dtype, [&](auto number) {
    using T = decltype(number);
    const Array grads = array_of_type(kFunction, "grad_out", grad_out, operands.dtype);
    auto found = without_lock([&] {
      return feature_map_attention_backward(view_of<T>(grads), view_of<T>(operands.query),
                                            view_of<T>(operands.key), view_of<T>(operands.value),
                                            options);
    });
    return nb::make_tuple(to_object(std::move(found.query), operands.library),
                          to_object(std::move(found.key), operands.library),
                          to_object(std::move(found.value), operands.library));
  });
}

}  // namespace

void bind_linear(nb::module_& module) {
  module.def("linear_attention", &linear, nb::arg("query").none(), nb::arg("key").none(),
             nb::arg("value").none(), nb::kw_only(), nb::arg("decay") = nb::none(),
             nb::arg("beta") = nb::none(), nb::arg("state") = nb::none(),
             nb::arg("scale") = nb::none(),
             "(out, state) of the recurrence S = exp(decay) S + k v, out = scale S q; with beta, "
             "the delta rule. query [batch, num_heads, length, head_dim], key [batch, "
             "num_kv_heads, length, head_dim], value [batch, num_states, length, value_dim], decay "
             "[batch, num_states, length, head_dim or 1], beta [batch, num_states, length], state "
             "[batch, num_states, head_dim, value_dim]; num_states is num_kv_heads or a multiple.");
  module.def("reference_linear_attention", &linear_by_reference, nb::arg("query").none(),
             nb::arg("key").none(), nb::arg("value").none(), nb::kw_only(),
             nb::arg("decay") = nb::none(), nb::arg("beta") = nb::none(),
             nb::arg("state") = nb::none(), nb::arg("scale") = nb::none());
  module.def("feature_map_attention", &feature_map, nb::arg("query").none(), nb::arg("key").none(),
             nb::arg("value").none(), nb::kw_only(), nb::arg("feature_map") = "elu+1",
             nb::arg("causal") = false, nb::arg("normalized") = true,
             "Attention in linear time whose weights are products of features, \"elu+1\" or "
             "\"relu\", of query and key; float32 or float64.");
  module.def("linear_attention_backward", &linear_backward, nb::arg("grad_out").none(),
             nb::arg("query").none(), nb::arg("key").none(), nb::arg("value").none(),
             nb::arg("grad_state").none(), nb::arg("extras"), nb::arg("scale").none());
  module.def("feature_map_attention_backward", &feature_map_backward, nb::arg("grad_out").none(),
             nb::arg("query").none(), nb::arg("key").none(), nb::arg("value").none(),
             nb::arg("feature_map"), nb::arg("causal"), nb::arg("normalized"));
}

}  // namespace heed::python
