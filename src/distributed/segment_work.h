// The amount of work for each segment of keys.
#pragma once

#include <vector>

#include "attention/request/request.h"

namespace heed { inline namespace v0 { namespace distributed {

// Returns, for each segment of keys, the number of pairs of a query in the request's part and a
// key, over all heads and batch entries. A tile counts in full if some of the adjacent queries may
// see one of its keys. 0 means that no key of the segment is read.
template <class Real>
std::vector<double> pairs_by_segment(const Request<Real>& request);

}}}  // namespace heed::v0::distributed
