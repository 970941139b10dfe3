#include "heed/attention.h"

#include <nanobind/stl/optional.h>

#include <optional>
#include <utility>

#include "bindings.h"
#include "operands.h"
#include "options.h"

namespace heed::python {

namespace {

constexpr const char* kAttention = "attention";

template <class T>
nb::object attention_of(const Operands& operands, const Options& options, bool with_lse,
                        std::optional<int> num_threads) {
  using Real = RealOf<T>;
  const CallOptions<Real> call(kAttention, options);
  const auto query = view_of_rank_4<T>(operands.query);
  const auto key = view_of_rank_4<T>(operands.key);
  const auto value = view_of_rank_4<T>(operands.value);
  if (!with_lse) {
    Tensor<T> out =
        without_lock(num_threads, [&] { return heed::attention(query, key, value, *call); });
    return to_object(std::move(out), operands.library, operands.rank);
  }
  auto both =
      without_lock(num_threads, [&] { return attention_with_lse(query, key, value, *call); });
  return to_objects(std::move(both), operands.library, operands.rank);
}

nb::object attention(nb::handle query, nb::handle key, nb::handle value, const Options& options,
                     bool with_lse, std::optional<int> num_threads) {
  const Operands operands = operands_of(kAttention, query, key, value);
  return with_type(operands.dtype, [&](auto number) {
    return attention_of<decltype(number)>(operands, options, with_lse, num_threads);
  });
}

}  // namespace

void bind_attention(nb::module_& module) {
  module.def("attention", &attention, nb::arg("query").none(), nb::arg("key").none(),
             nb::arg("value").none(), nb::arg("options"), nb::arg("with_lse"),
             nb::arg("num_threads").none());
}

}  // namespace heed::python
