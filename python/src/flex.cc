// Attention with functions of whole matrices.
#include <fmt/format.h>
#include <nanobind/stl/optional.h>

#include <functional>
#include <optional>
#include <utility>

#include "bindings.h"
#include "heed/attention/reference.h"
#include "numbers.h"
#include "operands.h"

namespace heed::python {

namespace {

// A Python function that receives a matrix as a NumPy array and returns another of the same shape.
template <class Real>
std::function<void(TensorView<Real>)> matrix_function(const char* name,
                                                      const nb::object& function) {
  if (function.is_none()) return {};
  return [name, function](TensorView<Real> matrix) {
    const Locked locked;
    const nb::object given = to_object(to_tensor(TensorView<const Real>(matrix)), Library::kNumpy);
    const nb::object returned = call_function(function, nb::make_tuple(given));
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
  return with_real(kFunction, "query", operands.dtype, [&](auto number) {
    using T = decltype(number);
    reference::FlexOptions<T> options{matrix_function<T>("score_mod", score_mod),
                                      matrix_function<T>("prob_mod", prob_mod), std::nullopt};
    if (scale) options.scale = static_cast<T>(*scale);
    auto out = without_lock([&] {
      return reference::flex_attention(view_of<T>(operands.query), view_of<T>(operands.key),
                                       view_of<T>(operands.value), options);
    });
    return to_object(std::move(out), operands.library);
  });
}

}  // namespace

void bind_flex(nb::module_& module) {
  module.def("reference_flex_attention", &flex, nb::arg("query").none(), nb::arg("key").none(),
             nb::arg("value").none(), nb::kw_only(), nb::arg("score_mod") = nb::none(),
             nb::arg("prob_mod") = nb::none(), nb::arg("scale") = nb::none());
}

}  // namespace heed::python
