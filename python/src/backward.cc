#include <nanobind/stl/optional.h>

#include <optional>
#include <utility>

#include "bindings.h"
#include "callables.h"
#include "gradients.h"
#include "heed/attention_backward.h"
#include "operands.h"
#include "options.h"

namespace heed::python {

namespace {

constexpr const char* kBackward = "attention_backward";

// What attention was given, and made of it.
struct Recorded {
  Operands operands;
  Array grad_out;
  Forward forward;
};

// A number for each row, with dimensions of 1 in front until there are three.
template <class Real>
TensorView<const Real> view_of_rows(const Array& array) {
  const TensorView<const Real> view = view_of<Real>(array);
  return view.rank() < 3 ? view.to_rank(3) : view;
}

template <class T>
nb::object backward_of(const Recorded& recorded, const Options& options,
                       std::optional<int> num_threads) {
  using Real = RealOf<T>;
  const Operands& operands = recorded.operands;
  const CallOptions<Real> call(kBackward, options);
  const Forward& made = recorded.forward;
  const AttentionOutputView<T, Real> forward(
      view_of_rank_4<T>(made.out), view_of_rows<Real>(made.lse),
      made.lse_low ? view_of_rows<Real>(*made.lse_low) : TensorView<const Real>());
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
  if (options.score_mod.is_valid() && !has_derivative(options.score_mod)) {
    throw InvalidArgument(
        "attention_backward: score_mod is a function of Python's, which has no derivative; "
        "heed.torch.attention has that of one in PyTorch's operations");
  }
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
