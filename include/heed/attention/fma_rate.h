/// How fast this processor could be: what the speed of a kernel is a share of.
#pragma once

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// Runs independent multiply-adds on float, and nothing else, on the calling thread for about
/// `seconds`, in the vectors that attention_target() computes in.
/// @return operations a second, two for each multiply-add of each lane.
/// @throws InvalidArgument when `seconds` is not a positive number, or as attention_target() does.
HEED_API double measure_fma_rate(double seconds = 1e-3);

}}  // namespace heed::v0
