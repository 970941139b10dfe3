// Kernels that multiply bfloat16 in AMX tiles.
#pragma once

#include "attention/kernels/kernels.h"

namespace heed { inline namespace v0 { namespace kernels {

// True if this processor has AMX tiles of bfloat16 and the system lets this process use them.
bool has_tile_products();

// A copy of the table with an additional in_pairs and a name of its own. Always to be called with
// the same table.
const KernelTable* with_tile_products(const KernelTable& table);

}}}  // namespace heed::v0::kernels
