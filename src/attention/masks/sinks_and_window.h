// The mask of a bounded sequence of a cache.
#pragma once

#include <cstdint>

#include "heed/attention/mask.h"

namespace heed { inline namespace v0 {

// A query at position p sees the keys k < sinks and k > p − window.
Mask sinks_and_window(std::int64_t sinks, std::int64_t window);

}}  // namespace heed::v0
