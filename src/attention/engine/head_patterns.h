// Statistics of heads: sums over the weights of some queries in all heads at once, a tile of keys
// at a time.
#pragma once

#include <cstddef>

#include "attention/engine/row_block.h"
#include "attention/engine/schedule.h"
#include "attention/heads/pattern_sums.h"

namespace heed { inline namespace v0 { namespace engine {

// The memory that diagnose() needs in addition to its result.
template <class Real>
std::size_t diagnostics_bytes(const Request<Real>& request, const Schedule<Real>& schedule);

// Computes the diagnostics of all heads. The schedule is for Pass::kWeights; the lengths must have
// been checked.
template <class Real>
AttentionDiagnostics diagnose(const Call<Real>& job, const Schedule<Real>& schedule,
                              const DiagnosticsOptions& lengths);

}}}  // namespace heed::v0::engine
