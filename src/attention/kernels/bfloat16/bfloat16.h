// Kernels whose products are of bfloat16 in pairs.
#pragma once

#include "attention/kernels/kernels.h"

namespace heed { inline namespace v0 { namespace kernels {

// Whether this processor multiplies and adds pairs of bfloat16 in vectors of AVX-512 or NEON.
bool has_bfloat16_products();

// The same table with one more, in_pairs, under a name of its own. Always of the same one.
const KernelTable* with_bfloat16_products(const KernelTable& table);

}}}  // namespace heed::v0::kernels
