// Diagnostics of heads, by plain loops over rows of weights from any source.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/heads/pattern_sums.h"
#include "attention/request/request.h"
#include "heed/core/function_ref.h"

namespace heed { inline namespace v0 { namespace reference {

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
