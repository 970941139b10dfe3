// Weights of chosen rows, statistics of all rows, and diagnostics of heads.
#include "heed/attention/statistics.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "heed/attention/diagnostics.h"
#include "masks.h"
#include "operands.h"
#include "options.h"
#include "readers.h"

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

namespace {

constexpr const char* kDiagnose = "diagnose";

using Lengths = std::vector<std::int64_t>;

// In the order of HeadDiagnostics in _diagnose.py.
nb::tuple head_object(const HeadDiagnostics& head) {
  return nb::make_tuple(head.rows, head.broken_rows, head.entropy, head.total, head.padding,
                        head.first, head.previous, head.same, head.next, head.offset_weight,
                        head.offset, head.vertical, head.vertical_key);
}

// In the order of Finding in _diagnose.py.
nb::tuple finding_object(const Finding& finding) {
  return nb::make_tuple(nb::str(name_of(finding.kind).data(), name_of(finding.kind).size()),
                        finding.heads, finding.score, finding.is_problem, finding.measured,
                        finding.meaning, finding.advice);
}

// Returns (heads, similarity, mean similarity, findings).
nb::tuple diagnostics_objects(AttentionDiagnostics&& found, Library library) {
  nb::list heads;
  for (const HeadDiagnostics& head : found.heads) heads.append(head_object(head));
  nb::list findings;
  for (const Finding& finding : attention_findings(found)) findings.append(finding_object(finding));
  const double mean = found.mean_similarity();
  return nb::make_tuple(heads, to_object(std::move(found.similarity), library), mean, findings);
}

nb::object of_attention(nb::handle query, nb::handle key, const Options& options,
                        const Lengths& q_lengths, const Lengths& kv_lengths) {
  const Operands operands = operands_of(kDiagnose, query, key, {});
  const DiagnosticsOptions real{q_lengths, kv_lengths};
  return with_type(operands.dtype, [&](auto number) -> nb::object {
    using T = decltype(number);
    const CallOptions<RealOf<T>> call(kDiagnose, options);
    return diagnostics_objects(without_lock([&] {
                                 return attention_diagnostics(view_of_rank_4<T>(operands.query),
                                                              view_of_rank_4<T>(operands.key),
                                                              *call, real);
                               }),
                               operands.library);
  });
}

nb::object of_weights(nb::handle weights, const MaskObject& mask, const Lengths& q_lengths,
                      const Lengths& kv_lengths) {
  const Array array = to_array(kDiagnose, "weights", weights);
  const DiagnosticsOptions real{q_lengths, kv_lengths};
  std::optional<Tensor<double>> copy;
  const auto view = as_real<double>(kDiagnose, "weights", array, copy);
  if (view.rank() < 2 || view.rank() > 4) {
    throw InvalidArgument(std::string(kDiagnose) + ": weights has shape " +
                          to_string(view.shape()) +
                          ", expected [batch, num_heads, queries, keys], of which the first two "
                          "may be missing");
  }
  return diagnostics_objects(
      without_lock([&] { return weight_diagnostics(view.to_rank(4), mask.mask, real); }),
      library_of(weights));
}

}  // namespace

void bind_diagnostics(nb::module_& module) {
  module.def("attention_diagnostics", &of_attention, nb::arg("query").none(), nb::arg("key").none(),
             nb::arg("options"), nb::arg("q_lengths"), nb::arg("kv_lengths"));
  module.def("weight_diagnostics", &of_weights, nb::arg("weights").none(), nb::arg("mask"),
             nb::arg("q_lengths"), nb::arg("kv_lengths"));
}

}  // namespace heed::python
