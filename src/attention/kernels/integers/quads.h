// Kernels whose products with quantised numbers are of quads of bytes.
#pragma once

#include "attention/kernels/kernels.h"

namespace heed { inline namespace v0 { namespace kernels {

// Whether this processor multiplies and adds quads of bytes in vectors of 512 bits.
bool has_quad_products();

// The same table with these products, under a name of its own. Always of the same one.
const KernelTable* with_quad_products(const KernelTable& table);

}}}  // namespace heed::v0::kernels
