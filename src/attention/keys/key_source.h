// The interface of the sources of keys and values. Each has a file in this folder or in cache/.
#pragma once

#include <cstdint>

#include "attention/kernels/decode/stored_tile.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 {

// Memory of one thread into which a tile may be copied; null where the source never copies.
template <class Real>
struct Staging {
  Real* key = nullptr;    // [kTileKeys][head_dim]
  Real* value = nullptr;  // [kTileKeys][value_dim]
  // True if rows of bfloat16 are to be read as pairs of neighbouring numbers.
  bool has_pairs = false;
  Real* pairs = nullptr;  // [kTileKeys / 2][head_dim or value_dim], for pairs of rows
};

// The keys and values of all heads and batch entries. Immutable while it is read, as threads share
// it.
template <class Real>
class KeySource {
 public:
  KeySource() = default;
  KeySource(const KeySource&) = default;
  KeySource& operator=(const KeySource&) = default;
  virtual ~KeySource() = default;

  // The keys `keys` of one key head, at most one tile, as rows of Real: in place, or copied to
  // `staging`.
  virtual kernels::BasicTile<Real> tile(std::int64_t batch, std::int64_t kv_head, RowRange keys,
                                        const Staging<Real>& staging) const = 0;

  // The keys `keys` in the form in which they are stored, which decode reads. Sets every member of
  // `tile`, except that of groups and scales only those that exist are set.
  virtual void describe(std::int64_t batch, std::int64_t kv_head, RowRange keys,
                        kernels::StoredTile& tile) const = 0;
  kernels::StoredTile stored_tile(std::int64_t batch, std::int64_t kv_head, RowRange keys) const {
    kernels::StoredTile tile;
    describe(batch, kv_head, keys, tile);
    return tile;
  }
};

}}  // namespace heed::v0
