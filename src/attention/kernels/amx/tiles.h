// Kernels whose products are of bfloat16 in the tiles of AMX.
#pragma once

#include "attention/kernels/kernels.h"

namespace heed { inline namespace v0 { namespace kernels {

// Whether this processor has tiles of bfloat16, and the system lets this process use them.
bool has_tile_products();

// The same table with one more, in_pairs, under a name of its own. Always of the same one.
const KernelTable* with_tile_products(const KernelTable& table);

}}}  // namespace heed::v0::kernels
