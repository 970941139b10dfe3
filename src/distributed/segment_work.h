// How much there is to compute with each segment of keys.
#pragma once

#include <vector>

#include "attention/request/request.h"

namespace heed { inline namespace v0 { namespace distributed {

// [segments of keys]: pairs of a query of the request's part and a key, in the tiles of which some
// of neighbouring queries may see a key, over all heads and batch entries. 0: none is read.
template <class Real>
std::vector<double> pairs_by_segment(const Request<Real>& request);

}}}  // namespace heed::v0::distributed
