// The number of tiles of scores that a request computes.
#pragma once

#include <cstdint>

#include "attention/engine/schedule.h"
#include "attention/request/request.h"
#include "heed/attention/plan.h"

namespace heed { inline namespace v0 {

template <class Real>
TileCounts count_tiles(const Request<Real>& request, const engine::Schedule<Real>& schedule);

}}  // namespace heed::v0
