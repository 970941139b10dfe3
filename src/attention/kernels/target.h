// Which kernels compute in this process.
#pragma once

#include <string_view>

#include "attention/kernels/kernels.h"

namespace heed { inline namespace v0 {

// The table that HEED_TARGET names, or the best one; null for the reference. Throws InvalidArgument
// when HEED_TARGET names none.
const kernels::KernelTable* kernels_in_use();

// Whose vectors these use, and with them every loop of heed that is compiled for several
// instruction sets: "AVX512", say, or "reference". Throws as kernels_in_use() does.
std::string_view vectors_in_use();

}}  // namespace heed::v0
