// The weights of some queries in all heads at once, a tile of keys at a time, and what is added up
// over them.
#pragma once

#include <cstddef>

#include "attention/engine/row_block.h"
#include "attention/engine/schedule.h"
#include "attention/heads/pattern_sums.h"

namespace heed { inline namespace v0 { namespace engine {

// Memory that diagnose() needs beside its result.
template <class Real>
std::size_t diagnostics_bytes(const Request<Real>& request, const Schedule<Real>& schedule);

// What the heads do. The schedule is for Pass::kWeights; lengths are checked.
template <class Real>
AttentionDiagnostics diagnose(const Call<Real>& job, const Schedule<Real>& schedule,
                              const DiagnosticsOptions& lengths);

}}}  // namespace heed::v0::engine
