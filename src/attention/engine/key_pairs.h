// Pairs of rows of neighbouring keys, for kernels that multiply bfloat16 in pairs.
#pragma once

#include <cstdint>

#include "attention/engine/schedule.h"
#include "attention/kernels/kernels.h"

namespace heed { inline namespace v0 { namespace engine {

enum class SummedOverKeys {
  kValues,  // in the forward pass
  kKeys,    // in the backward pass
};

// Writes the pairs of a tile to `pairs`, which has room for pair_cells().
template <class Real>
void put_pairs(const Schedule<Real>& schedule, SummedOverKeys what, kernels::BasicTile<Real>& tile,
               Real* pairs) {
  const bool are_values = what == SummedOverKeys::kValues;
  const auto dim = static_cast<std::int32_t>(are_values ? schedule.value_dim : schedule.head_dim);
  tile.pairs = pairs;
  tile.pair_stride = schedule.table->pair_keys(are_values ? tile.value : tile.key,
                                               are_values ? tile.value_stride : tile.key_stride,
                                               tile.num_keys, dim, pairs);
}

}}}  // namespace heed::v0::engine
