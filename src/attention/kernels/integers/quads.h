// Kernels that multiply quantised numbers in quads of bytes.
#pragma once

#include "attention/kernels/kernels.h"

namespace heed { inline namespace v0 { namespace kernels {

// True if this processor multiplies and adds quads of bytes in vectors of 512 bits.
bool has_quad_products();

// A copy of the table with these products and a name of its own. Always to be called with the same
// table.
const KernelTable* with_quad_products(const KernelTable& table);

}}}  // namespace heed::v0::kernels
