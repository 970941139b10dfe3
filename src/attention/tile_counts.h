// How many tiles of scores a request computes.
#pragma once

#include <cstdint>

#include "attention/request.h"
#include "heed/plan.h"

namespace heed::inline v0 {

// For panels of so many rows.
template <class Real>
TileCounts count_tiles(const Request<Real>& request, std::int64_t panel_rows);

}  // namespace heed::inline v0
