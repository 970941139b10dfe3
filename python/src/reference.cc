#include "heed/attention/reference.h"

#include <fmt/format.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "operands.h"
#include "options.h"

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

}  // namespace heed::python
