#include <nanobind/stl/optional.h>

#include <optional>
#include <utility>

#include "bindings.h"
#include "heed/attention_backward.h"
#include "operands.h"
#include "options.h"

namespace heed::python {

namespace {

constexpr const char* kBackward = "attention_backward";

// What attention was given, and made of it.
struct Recorded {
  Operands operands;
  Array grad_out, out, lse;
};

// A gradient in the shape of what it belongs to, or None where there is nothing.
template <class T>
nb::object gradient(Tensor<T>&& tensor, const std::optional<Array>& option, Library library) {
  if (!option) return nb::none();
  return to_object(std::move(tensor), library);
}

template <class T>
nb::object backward_of(const Recorded& recorded, const Options& options,
                       std::optional<int> num_threads) {
  using Real = RealOf<T>;
  const Operands& operands = recorded.operands;
  const CallOptions<Real> call(kBackward, options);
  const TensorView<const T> out = view_of_rank_4<T>(recorded.out);
  TensorView<const Real> lse = view_of<Real>(recorded.lse);
  if (lse.rank() < 3) lse = lse.to_rank(3);
  auto found = without_lock(num_threads, [&] {
    return attention_backward(view_of_rank_4<T>(recorded.grad_out),
                              view_of_rank_4<T>(operands.query), view_of_rank_4<T>(operands.key),
                              view_of_rank_4<T>(operands.value),
                              AttentionOutputView<T, Real>(out, lse), *call);
  });
  const auto rank_of = [](const Array& array) { return static_cast<int>(array.ndim()); };
  const Library library = operands.library;
  return nb::make_tuple(to_object(std::move(found.query), library, rank_of(operands.query)),
                        to_object(std::move(found.key), library, rank_of(operands.key)),
                        to_object(std::move(found.value), library, rank_of(operands.value)),
                        gradient(std::move(found.alibi_slopes), options.alibi_slopes, library),
                        gradient(std::move(found.bias), options.bias, library),
                        gradient(std::move(found.sinks), options.sinks, library));
}

nb::object backward(nb::handle grad_out, nb::handle query, nb::handle key, nb::handle value,
                    nb::handle out, nb::handle lse, const Options& options,
                    std::optional<int> num_threads) {
  const Operands operands = operands_of(kBackward, query, key, value);
  const DataType dtype = operands.dtype;
  const DataType type_of_lse =
      dtype == DataType::kFloat64 ? DataType::kFloat64 : DataType::kFloat32;
  if (options.score_mod.is_valid()) {
    throw InvalidArgument(
        "attention_backward: score_mod is a function of Python's, which has no derivative");
  }
  const Recorded recorded{.operands = operands,
                          .grad_out = array_of_type(kBackward, "grad_out", grad_out, dtype),
                          .out = array_of_type(kBackward, "out", out, dtype),
                          .lse = array_of_type(kBackward, "lse", lse, type_of_lse)};
  return with_type(dtype, [&](auto number) {
    return backward_of<decltype(number)>(recorded, options, num_threads);
  });
}

}  // namespace

void bind_backward(nb::module_& module) {
  module.def("attention_backward", &backward, nb::arg("grad_out").none(), nb::arg("query").none(),
             nb::arg("key").none(), nb::arg("value").none(), nb::arg("out").none(),
             nb::arg("lse").none(), nb::arg("options"), nb::arg("num_threads").none());
}

}  // namespace heed::python
