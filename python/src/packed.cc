// Sequences of different lengths in one array.
#include "heed/attention/packed.h"

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings.h"
#include "gradients.h"
#include "operands.h"
#include "options.h"
#include "readers.h"

namespace heed::python {

namespace {

using Boundaries = std::vector<std::int64_t>;

template <class T>
nb::object packed_of(const Operands& operands, const PackedSequences& sequences,
                     const Options& options, std::optional<int> num_threads) {
  const CallOptions<float> call("attention_packed", options);
  auto out = without_lock(num_threads, [&] {
    return attention_packed(view_of<T>(operands.query), view_of<T>(operands.key),
                            view_of<T>(operands.value), sequences, *call);
  });
  return to_object(std::move(out), operands.library);
}

nb::object packed(nb::handle query, nb::handle key, nb::handle value,
                  const Boundaries& cu_seqlens_q, const Boundaries& cu_seqlens_k,
                  const Options& options, std::optional<int> num_threads) {
  constexpr const char* kFunction = "attention_packed";
  const Operands operands = operands_of(kFunction, query, key, value);
  return with_type(operands.dtype, [&](auto number) -> nb::object {
    using T = decltype(number);
    if constexpr (std::is_same_v<T, double>) {
      throw InvalidArgument(
          fmt::format("{}: query is float64, expected float32, float16 or bfloat16", kFunction));
    } else {
      return packed_of<T>(operands, {cu_seqlens_q, cu_seqlens_k}, options, num_threads);
    }
  });
}

// Reads operands for a computation that exists only in float.
Operands float_operands(const char* function, nb::handle query, nb::handle key, nb::handle value) {
  Operands operands = operands_of(function, query, key, value);
  if (operands.dtype == DataType::kFloat32) return operands;
  throw InvalidArgument(
      fmt::format("{}: query is {}, expected float32", function, to_string(operands.dtype)));
}

nb::object packed_with_lse(nb::handle query, nb::handle key, nb::handle value,
                           const Boundaries& cu_seqlens_q, const Boundaries& cu_seqlens_k,
                           const Options& options, std::optional<int> num_threads) {
  constexpr const char* kFunction = "attention_packed with return_lse";
  const Operands operands = float_operands(kFunction, query, key, value);
  const CallOptions<float> call(kFunction, options);
  auto both = without_lock(num_threads, [&] {
    return attention_packed_with_lse(view_of<float>(operands.query), view_of<float>(operands.key),
                                     view_of<float>(operands.value), {cu_seqlens_q, cu_seqlens_k},
                                     *call);
  });
  return to_objects(std::move(both), operands.library, operands.rank);
}

nb::object packed_backward(nb::handle grad_out, nb::handle query, nb::handle key, nb::handle value,
                           const nb::tuple& made, const nb::tuple& cu_seqlens,
                           const Options& options, std::optional<int> num_threads) {
  constexpr const char* kFunction = "attention_packed_backward";
  const Operands operands = float_operands(kFunction, query, key, value);
  if (options.score_mod.is_valid()) {
    throw InvalidArgument(
        fmt::format("{}: score_mod is a function of Python's, which has no derivative", kFunction));
  }
  const Array grads = array_of_type(kFunction, "grad_out", grad_out, operands.dtype);
  const Forward kept = forward_of(kFunction, made, operands.dtype);
  const AttentionOutputView<float> forward(
      view_of<float>(kept.out), view_of<float>(kept.lse),
      kept.lse_low ? view_of<float>(*kept.lse_low) : FloatView());
  const auto queries = read_as<Boundaries>(kFunction, "cu_seqlens_q", cu_seqlens[0]);
  const auto keys = read_as<Boundaries>(kFunction, "cu_seqlens_k", cu_seqlens[1]);
  const CallOptions<float> call(kFunction, options);
  auto found = without_lock(num_threads, [&] {
    return attention_packed_backward(view_of<float>(grads), view_of<float>(operands.query),
                                     view_of<float>(operands.key), view_of<float>(operands.value),
                                     {queries, keys}, forward, *call);
  });
  return to_objects(std::move(found), operands, options);
}

}  // namespace

void bind_packed(nb::module_& module) {
  for (const auto& [name, function] : {std::pair{"attention_packed", &packed},
                                       std::pair{"attention_packed_with_lse", &packed_with_lse}}) {
    module.def(name, function, nb::arg("query").none(), nb::arg("key").none(),
               nb::arg("value").none(), nb::arg("cu_seqlens_q"), nb::arg("cu_seqlens_k"),
               nb::arg("options"), nb::arg("num_threads").none());
  }
  module.def("attention_packed_backward", &packed_backward, nb::arg("grad_out").none(),
             nb::arg("query").none(), nb::arg("key").none(), nb::arg("value").none(),
             nb::arg("forward"), nb::arg("cu_seqlens"), nb::arg("options"),
             nb::arg("num_threads").none());
}

}  // namespace heed::python
