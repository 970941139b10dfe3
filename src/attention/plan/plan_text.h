// Requests and schedules as lines of text, and the number of tiles that are computed.
#pragma once

#include <cstdint>
#include <string>

#include "attention/engine/schedule.h"
#include "attention/request/request.h"
#include "heed/attention/plan.h"

namespace heed { inline namespace v0 {

// The shapes, types, mask and terms of a request.
template <class Real>
std::string request_text(const Request<Real>& request);

// The kernels and the division of the work, with reasons.
template <class Real>
std::string fused_text(const Request<Real>& request, const engine::Schedule<Real>& schedule);

template <class Real>
TileCounts count_tiles(const Request<Real>& request, const engine::Schedule<Real>& schedule);

}}  // namespace heed::v0
