// The executable specification, and attention with functions of whole matrices.
#include "heed/attention/reference.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "operands.h"
#include "options.h"
#include "readers.h"

namespace heed::python {

namespace {

using reference::Keep;

constexpr const char* kReference = "reference.attention";

constexpr std::pair<const char*, Keep> kSteps[] = {
    {"scores", Keep::kScores}, {"capped", Keep::kCapped},   {"modified", Keep::kModified},
    {"masked", Keep::kMasked}, {"weights", Keep::kWeights}, {"dropped", Keep::kDropped}};

Keep keep_of(const std::vector<std::string>& names) {
  Keep keep = Keep::kNothing;
  for (const std::string& name : names) {
    const auto* const step = std::find_if(std::begin(kSteps), std::end(kSteps),
                                          [&](const auto& one) { return one.first == name; });
    if (step == std::end(kSteps)) {
      throw InvalidArgument(fmt::format(
          "{}: keep contains \"{}\", expected scores, capped, modified, masked, weights "
          "or dropped",
          kReference, name));
    }
    keep = keep | step->second;
  }
  return keep;
}

template <class T>
nb::object steps_of(const Operands& operands, const Options& options, Keep keep) {
  const CallOptions<T> call(kReference, options);
  auto found = without_lock([&] {
    return reference::attention(view_of_rank_4<T>(operands.query), view_of_rank_4<T>(operands.key),
                                view_of_rank_4<T>(operands.value), *call, keep);
  });
  const auto step = [&](Tensor<T>& tensor, Keep which) -> nb::object {
    if (!has(keep, which)) return nb::none();
    return to_object(std::move(tensor), operands.library, operands.rank);
  };
  return nb::make_tuple(to_object(std::move(found.out), operands.library, operands.rank),
                        to_object(std::move(found.lse), operands.library, operands.rank - 1),
                        step(found.scores, Keep::kScores), step(found.capped, Keep::kCapped),
                        step(found.modified, Keep::kModified), step(found.masked, Keep::kMasked),
                        step(found.weights, Keep::kWeights), step(found.dropped, Keep::kDropped));
}

nb::object reference_attention(nb::handle query, nb::handle key, nb::handle value,
                               const std::vector<std::string>& keep, const Options& options) {
  const Operands operands = operands_of(kReference, query, key, value);
  const Keep steps = keep_of(keep);
  if (operands.dtype == DataType::kFloat64) return steps_of<double>(operands, options, steps);
  if (operands.dtype == DataType::kFloat32) return steps_of<float>(operands, options, steps);
  throw InvalidArgument(
      fmt::format("{}: query is of half precision, expected float32 or float64", kReference));
}

}  // namespace

void bind_reference(nb::module_& module) {
  module.def("reference_attention", &reference_attention, nb::arg("query").none(),
             nb::arg("key").none(), nb::arg("value").none(), nb::arg("keep"), nb::arg("options"));
}

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
