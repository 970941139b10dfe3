#include "heed/attention/plan.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "bindings.h"
#include "operands.h"
#include "options.h"

namespace heed::python {

namespace {

constexpr const char* kPlan = "plan";

// A plan, and the options that it refers to.
class PlanObject {
 public:
  PlanObject(const AttentionShapes& shapes, const Options& options)
      : options_(options),
        call_(call_options(options_, shapes.dtype)),
        plan_(std::visit([&](const auto& call) { return heed::plan(shapes, *call); }, call_)) {}
  PlanObject(const PlanObject&) = delete;
  PlanObject& operator=(const PlanObject&) = delete;

  const AttentionPlan& plan() const noexcept { return plan_; }
  FunctionHandles functions() const { return options_.functions(); }

  nb::object run(nb::handle query, nb::handle key, nb::handle value) const {
    const Operands operands = operands_of("Plan.run", query, key, value);
    return with_type(operands.dtype, [&](auto number) -> nb::object {
      using T = decltype(number);
      Tensor<T> out = without_lock([&] {
        return plan_.run(view_of_rank_4<T>(operands.query), view_of_rank_4<T>(operands.key),
                         view_of_rank_4<T>(operands.value));
      });
      return to_object(std::move(out), operands.library, operands.rank);
    });
  }

 private:
  using Call = std::variant<CallOptions<float>, CallOptions<double>>;

  static Call call_options(const Options& options, DataType dtype) {
    if (dtype == DataType::kFloat64) {
      return Call(std::in_place_type<CallOptions<double>>, kPlan, options);
    }
    return Call(std::in_place_type<CallOptions<float>>, kPlan, options);
  }

  Options options_;
  Call call_;
  AttentionPlan plan_;
};

nb::dict tiles(const PlanObject& self) {
  const TileCounts counts = self.plan().tiles();
  nb::dict result;
  result["rows"] = counts.rows;
  result["keys"] = counts.keys;
  result["total"] = counts.total;
  result["skipped"] = counts.skipped;
  result["mixed"] = counts.mixed;
  return result;
}

// A property that the plan has itself.
template <auto kMember>
auto property() {
  return [](const PlanObject& self) { return (self.plan().*kMember)(); };
}

}  // namespace

void bind_plan(nb::module_& module) {
  nb::class_<PlanObject>(module, "Plan", nb::type_slots(collected_slots<PlanObject>),
                         "A decision how to compute attention, made once and run as often as "
                         "wanted, by any number of threads at once.")
      .def("run", &PlanObject::run, nb::arg("query").none(), nb::arg("key").none(),
           nb::arg("value").none(),
           "Attention of arrays whose shapes and type are those planned for.")
      .def("__call__", &PlanObject::run, nb::arg("query").none(), nb::arg("key").none(),
           nb::arg("value"))
      .def("__str__", property<&AttentionPlan::to_string>())
      .def("__repr__", property<&AttentionPlan::to_string>())
      .def("tiles", &tiles,
           "How much of the score matrix is computed: the rows and keys of a tile, and tiles in "
           "total, skipped, and mixed, of which some query does not see all keys.")
      .def_prop_ro("target", property<&AttentionPlan::target>(), "The kernels' instruction set.")
      .def_prop_ro("num_threads", property<&AttentionPlan::num_threads>())
      .def_prop_ro("splits_keys", property<&AttentionPlan::splits_keys>(),
                   "Whether threads share the keys of a row.")
      .def_prop_ro("workspace_bytes", property<&AttentionPlan::workspace_bytes>());
  module.def(
      "plan",
      [](nb::handle query, nb::handle key, nb::handle value, const std::string& dtype,
         const Options& options) {
        return std::make_unique<PlanObject>(planned_shapes(kPlan, query, key, value, dtype),
                                            options);
      },
      nb::arg("query").none(), nb::arg("key").none(), nb::arg("value").none(), nb::arg("dtype"),
      nb::arg("options"));
}

}  // namespace heed::python
