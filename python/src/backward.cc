#include "heed/attention/backward.h"

#include <nanobind/stl/optional.h>

#include <optional>
#include <utility>

#include "bindings.h"
#include "callables.h"
#include "gradients.h"
#include "operands.h"
#include "options.h"

namespace heed::python {

namespace {

constexpr const char* kBackward = "attention_backward";

// The inputs and the results of attention.
struct Recorded {
  Operands operands;
  Array grad_out;
  Forward forward;
};

template <class T>
nb::object backward_of(const Recorded& recorded, const Options& options,
                       std::optional<int> num_threads) {
  using Real = RealOf<T>;
  const Operands& operands = recorded.operands;
  const CallOptions<Real> call(kBackward, options);
  const auto forward = view_of_forward<T, Real>(recorded.forward);
  auto found = without_lock(num_threads, [&] {
    return attention_backward(view_of_rank_4<T>(recorded.grad_out),
                              view_of_rank_4<T>(operands.query), view_of_rank_4<T>(operands.key),
                              view_of_rank_4<T>(operands.value), forward, *call);
  });
  return to_objects(std::move(found), operands, options);
}

nb::object backward(nb::handle grad_out, nb::handle query, nb::handle key, nb::handle value,
                    const nb::tuple& forward, const Options& options,
                    std::optional<int> num_threads) {
  const Operands operands = operands_of(kBackward, query, key, value);
  const DataType dtype = operands.dtype;
  check_derivative(kBackward, options);
  const Recorded recorded{.operands = operands,
                          .grad_out = array_of_type(kBackward, "grad_out", grad_out, dtype),
                          .forward = forward_of(kBackward, forward, dtype)};
  return with_type(dtype, [&](auto number) {
    return backward_of<decltype(number)>(recorded, options, num_threads);
  });
}

}  // namespace

void bind_backward(nb::module_& module) {
  module.def("attention_backward", &backward, nb::arg("grad_out").none(), nb::arg("query").none(),
             nb::arg("key").none(), nb::arg("value").none(), nb::arg("forward"), nb::arg("options"),
             nb::arg("num_threads").none());
}

}  // namespace heed::python
