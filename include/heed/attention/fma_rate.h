/// The peak arithmetic rate of this processor, to which the speed of a kernel is compared.
#pragma once

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// Runs independent float multiply-adds alone on the calling thread for about `seconds`, in the
/// vectors that attention_target() computes in.
/// @return operations per second, two for each multiply-add of each lane.
/// @throws InvalidArgument when `seconds` is not a positive number, or as attention_target() does.
HEED_API double measure_fma_rate(double seconds = 1e-3);

}}  // namespace heed::v0
