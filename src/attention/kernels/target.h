// The kernels in use in this process.
#pragma once

#include <string_view>

#include "attention/kernels/kernels.h"

namespace heed { inline namespace v0 {

// The table named by HEED_TARGET, or else the best one; null for the reference. Throws
// InvalidArgument if HEED_TARGET names no table.
const kernels::KernelTable* kernels_in_use();

// The instruction set of the vectors of these kernels, and of every loop of heed that is compiled
// for several: e.g. "AVX512", or "reference". Throws as kernels_in_use() does.
std::string_view vectors_in_use();

}}  // namespace heed::v0
