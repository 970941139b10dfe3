// Weights of chosen rows, and statistics of all, by plain loops over checked arguments.
#pragma once

#include <span>

#include "attention/request.h"
#include "heed/statistics.h"

namespace heed::inline v0::reference {

template <class Real>
Tensor<Real> weights_of_rows(const Problem<Real>& problem, std::span<const AttentionRow> rows);

template <class Real>
BasicAttentionStatistics<Real> statistics_of(const Problem<Real>& problem, std::int64_t top_k);

}  // namespace heed::inline v0::reference
