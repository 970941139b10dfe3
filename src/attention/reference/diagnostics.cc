#include <cmath>
#include <cstddef>

#include "attention/reference/arithmetic.h"
#include "attention/reference/passes.h"
#include "attention/reference/row.h"
#include "core/float_environment.h"
#include "heed/attention/reference.h"

namespace heed { inline namespace v0 { namespace reference {

namespace {

double product(const SeenWeights& a, const SeenWeights& b) {
  double sum = 0;
  for (std::size_t k = 0; k < a.weights.size(); ++k) sum += a.weights[k] * b.weights[k];
  return sum;
}

// Adds the sums of one row, and returns its kind.
RowKind add_row(const SeenWeights& row, std::int64_t head, std::int64_t q, PatternSums& sums) {
  std::int64_t keys_seen = 0;
  bool is_finite = true;
  double entropy = 0;
  for (std::size_t k = 0; k < row.weights.size(); ++k) {
    keys_seen += row.seen[k] ? 1 : 0;
    is_finite = is_finite && std::isfinite(row.weights[k]);
    entropy -= weight_times_log(row.weights[k]);
  }
  const RowKind kind = kind_of_row(is_finite, keys_seen);
  sums.add_row(head, q, kind, keys_seen, entropy);
  for (std::size_t i = 0; i < row.weights.size(); ++i) {
    const auto k = static_cast<std::int64_t>(i);
    if (kind == RowKind::kForced) sums.forced_mass(head, k) += row.weights[i];
    if (kind != RowKind::kChooses) continue;
    sums.mass(head, k) += row.weights[i];
    sums.offset_mass(head, sums.offset_index(q, k)) += row.weights[i];
  }
  return kind;
}

void add_query(std::int64_t batch, std::int64_t q, WeightsOf weights_of,
               std::vector<SeenWeights>& rows, PatternSums& sums) {
  std::vector<RowKind> kinds;
  for (std::size_t head = 0; head < rows.size(); ++head) {
    weights_of(batch, static_cast<std::int64_t>(head), q, rows[head]);
    kinds.push_back(add_row(rows[head], static_cast<std::int64_t>(head), q, sums));
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = i + 1; j < rows.size(); ++j) {
      if (kinds[i] != RowKind::kChooses || kinds[j] != RowKind::kChooses) continue;
      const double squares = product(rows[i], rows[i]) * product(rows[j], rows[j]);
      if (squares == 0) continue;
      const auto first = static_cast<std::int64_t>(i);
      const auto second = static_cast<std::int64_t>(j);
      sums.cosines(first, second) += product(rows[i], rows[j]) / std::sqrt(squares);
      sums.cosine_rows(first, second) += 1;
    }
  }
}

}  // namespace

AttentionDiagnostics diagnose_rows(const ScoreShape& shape, const DiagnosticsOptions& lengths,
                                   WeightsOf weights_of) {
  std::vector<SeenWeights> rows(static_cast<std::size_t>(shape.num_heads));
  for (SeenWeights& row : rows) {
    row.weights.resize(static_cast<std::size_t>(shape.kv_len));
    row.seen.resize(static_cast<std::size_t>(shape.kv_len));
  }
  std::vector<PatternSums> sequences;
  for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
    PatternSums& sums = sequences.emplace_back(shape);
    sums.kv_length = length_of(lengths.kv_lengths, batch, shape.kv_len);
    const std::int64_t queries = length_of(lengths.q_lengths, batch, shape.q_len);
    for (std::int64_t q = 0; q < queries; ++q) add_query(batch, q, weights_of, rows, sums);
  }
  return diagnostics_of(sequences, shape);
}

template <class Real>
AttentionDiagnostics diagnose(const Problem<Real>& problem, const DiagnosticsOptions& lengths) {
  Row<Real> row(problem);
  const auto weights_of = [&row](std::int64_t batch, std::int64_t head, std::int64_t q,
                                 SeenWeights& result) {
    row.compute(batch, head, q);
    for (std::size_t k = 0; k < row.weights.size(); ++k) {
      result.seen[k] = is_seen(row.masked[k]);
      result.weights[k] = result.seen[k] ? static_cast<double>(row.weights[k]) : 0.0;
    }
  };
  return diagnose_rows(problem.scores(), lengths, weights_of);
}

template AttentionDiagnostics diagnose(const Problem<float>&, const DiagnosticsOptions&);
template AttentionDiagnostics diagnose(const Problem<double>&, const DiagnosticsOptions&);

AttentionDiagnostics attention_diagnostics(FloatView query, FloatView key,
                                           const AttentionOptions& options,
                                           const DiagnosticsOptions& diagnostics) {
  const FloatEnvironment environment;
  constexpr const char* kFunction = "attention_diagnostics";
  const auto problem = check_weights(kFunction, query, key, options);
  check_lengths(kFunction, diagnostics, problem.scores());
  return diagnose(problem, diagnostics);
}

AttentionDiagnostics attention_diagnostics(DoubleView query, DoubleView key,
                                           const AttentionOptions64& options,
                                           const DiagnosticsOptions& diagnostics) {
  const FloatEnvironment environment;
  constexpr const char* kFunction = "attention_diagnostics";
  const auto problem = check_weights(kFunction, query, key, options);
  check_lengths(kFunction, diagnostics, problem.scores());
  return diagnose(problem, diagnostics);
}

}}}  // namespace heed::v0::reference
