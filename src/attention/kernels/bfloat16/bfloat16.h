// Kernels that multiply bfloat16 in pairs.
#pragma once

#include "attention/kernels/kernels.h"

namespace heed { inline namespace v0 { namespace kernels {

// True if this processor multiplies and adds pairs of bfloat16 in vectors of AVX-512 or NEON.
bool has_bfloat16_products();

// A copy of the table with an additional in_pairs and a name of its own. Always to be called with
// the same table.
const KernelTable* with_bfloat16_products(const KernelTable& table);

}}}  // namespace heed::v0::kernels
