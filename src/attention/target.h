// Which kernels compute in this process.
#pragma once

#include "attention/kernels/kernels.h"

namespace heed::inline v0 {

// The table that HEED_TARGET names, or the best one; null for the reference. Throws InvalidArgument
// when HEED_TARGET names none.
const kernels::KernelTable* kernels_in_use();

}  // namespace heed::inline v0
