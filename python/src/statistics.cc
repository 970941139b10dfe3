#include "heed/attention/statistics.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "bindings.h"
#include "operands.h"
#include "options.h"

namespace heed::python {

namespace {

constexpr const char* kWeights = "attention_weights";
constexpr const char* kStatistics = "attention_statistics";

using RowIndices = std::vector<std::array<std::int64_t, 3>>;

nb::object weights(nb::handle query, nb::handle key, const RowIndices& indices,
                   const Options& options, std::optional<int> num_threads) {
  const Operands operands = operands_of(kWeights, query, key, {});
  std::vector<AttentionRow> rows;
  rows.reserve(indices.size());
  for (const auto& [batch, head, q] : indices) rows.push_back({batch, head, q});
  return with_type(operands.dtype, [&](auto number) {
    using T = decltype(number);
    const CallOptions<RealOf<T>> call(kWeights, options);
    auto result = without_lock(num_threads, [&] {
      return attention_weights(view_of_rank_4<T>(operands.query), view_of_rank_4<T>(operands.key),
                               rows, *call);
    });
    return to_object(std::move(result), operands.library);
  });
}

nb::object statistics(nb::handle query, nb::handle key, std::int64_t top_k, const Options& options,
                      std::optional<int> num_threads) {
  const Operands operands = operands_of(kStatistics, query, key, {});
  return with_type(operands.dtype, [&](auto number) -> nb::object {
    using T = decltype(number);
    const CallOptions<RealOf<T>> call(kStatistics, options);
    auto found = without_lock(num_threads, [&] {
      return attention_statistics(view_of_rank_4<T>(operands.query),
                                  view_of_rank_4<T>(operands.key), *call, {.top_k = top_k});
    });
    const auto object = [&](auto& tensor, int rank) {
      return to_object(std::move(tensor), operands.library, rank);
    };
    const int rank = operands.rank;
    return nb::make_tuple(object(found.lse, rank - 1), object(found.entropy, rank - 1),
                          object(found.max_weight, rank - 1), object(found.max_key, rank - 1),
                          object(found.top_weights, rank), object(found.top_keys, rank),
                          object(found.key_mass, rank - 1));
  });
}

}  // namespace

void bind_statistics(nb::module_& module) {
  module.def("attention_weights", &weights, nb::arg("query").none(), nb::arg("key").none(),
             nb::arg("rows"), nb::arg("options"), nb::arg("num_threads").none());
  module.def("attention_statistics", &statistics, nb::arg("query").none(), nb::arg("key").none(),
             nb::arg("top_k"), nb::arg("options"), nb::arg("num_threads").none());
}

}  // namespace heed::python
