// The passes of the reference, plain loops over checked arguments.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/heads/pattern_sums.h"
#include "attention/request/request.h"
#include "heed/attention/reference.h"
#include "heed/attention/statistics.h"
#include "heed/core/function_ref.h"

namespace heed { inline namespace v0 { namespace reference {

// The result for the batch entries in `batches`; it has entries for these alone.
template <class Real>
Result<Real> forward(const Problem<Real>& problem, RowRange batches, Keep keep = Keep::kNothing);

// The gradients of the batch entries in `batches`; those of query, key and value have entries for
// these alone.
template <class Real>
Gradients<Real> backward(const Problem<Real>& problem, TensorView<const Real> grad_out,
                         RowRange batches);

template <class Real>
Tensor<Real> weights_of_rows(const Problem<Real>& problem, std::span<const AttentionRow> rows);

template <class Real>
BasicAttentionStatistics<Real> statistics_of(const Problem<Real>& problem, std::int64_t top_k);

// The weights of a query in one head; 0 for keys that it does not see.
struct SeenWeights {
  std::vector<double> weights;  // [kv_len]
  std::vector<bool> seen;       // [kv_len]
};

// Sets the row of a query.
using WeightsOf =
    FunctionRef<void(std::int64_t batch, std::int64_t head, std::int64_t q, SeenWeights& row)>;

// The lengths must have been checked.
AttentionDiagnostics diagnose_rows(const ScoreShape& shape, const DiagnosticsOptions& lengths,
                                   WeightsOf weights_of);

template <class Real>
AttentionDiagnostics diagnose(const Problem<Real>& problem, const DiagnosticsOptions& lengths);

}}}  // namespace heed::v0::reference
