// Rows of neighbouring keys side by side, for kernels that multiply bfloat16 in pairs.
#pragma once

#include <cstdint>

#include "attention/engine/schedule.h"
#include "attention/kernels/kernels.h"

namespace heed::inline v0::engine {

// What is summed over keys: values on the way forward, keys on the way back. Its pairs are put into
// `pairs`, which is memory for pair_cells().
template <class Real>
void put_pairs_of_values(const Schedule<Real>& schedule, kernels::BasicTile<Real>& tile,
                         Real* pairs) {
  const auto dim = static_cast<std::int32_t>(schedule.value_dim);
  schedule.table->pair_keys(tile.value, tile.value_stride, tile.num_keys, dim, pairs);
  tile.pairs = pairs;
  tile.pair_stride = dim;
}
template <class Real>
void put_pairs_of_keys(const Schedule<Real>& schedule, kernels::BasicTile<Real>& tile,
                       Real* pairs) {
  const auto dim = static_cast<std::int32_t>(schedule.head_dim);
  schedule.table->pair_keys(tile.key, tile.key_stride, tile.num_keys, dim, pairs);
  tile.pairs = pairs;
  tile.pair_stride = dim;
}

}  // namespace heed::inline v0::engine
