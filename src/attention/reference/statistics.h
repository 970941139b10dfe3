// Weights of chosen rows, and statistics of all rows, by plain loops over checked arguments.
#pragma once

#include <span>

#include "attention/request/request.h"
#include "heed/attention/statistics.h"

namespace heed { inline namespace v0 { namespace reference {

template <class Real>
Tensor<Real> weights_of_rows(const Problem<Real>& problem, std::span<const AttentionRow> rows);

template <class Real>
BasicAttentionStatistics<Real> statistics_of(const Problem<Real>& problem, std::int64_t top_k);

}}}  // namespace heed::v0::reference
