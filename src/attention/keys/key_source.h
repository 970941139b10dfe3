// Where keys and values come from: a file for each kind of place, in this folder.
#pragma once

#include <cstdint>

#include "attention/kernels/decode/stored_tile.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 {

// Memory of one thread into which a tile may be copied; null where tiles of that kind never are.
template <class Real>
struct Staging {
  Real* key = nullptr;    // [kTileKeys][head_dim]
  Real* value = nullptr;  // [kTileKeys][value_dim]
  // Rows are asked for as bfloat16, which they are, read as pairs of neighbours.
  bool has_pairs = false;
  Real* pairs = nullptr;  // [kTileKeys / 2][head_dim or value_dim], for who puts pairs together
};

// The keys and values of all heads and batch entries. Immutable while it is read: threads share it.
template <class Real>
class KeySource {
 public:
  KeySource() = default;
  KeySource(const KeySource&) = default;
  KeySource& operator=(const KeySource&) = default;
  virtual ~KeySource() = default;

  // The keys `keys` of one key head, at most a tile, as rows of Real: where they lie, or copied.
  virtual kernels::BasicTile<Real> tile(std::int64_t batch, std::int64_t kv_head, RowRange keys,
                                        const Staging<Real>& staging) const = 0;

  // The same where they lie, as they are stored: what a panel of few rows reads. Every member of
  // `tile` is set, of groups those that there are, and their scales if they have any.
  virtual void describe(std::int64_t batch, std::int64_t kv_head, RowRange keys,
                        kernels::StoredTile& tile) const = 0;
  kernels::StoredTile stored_tile(std::int64_t batch, std::int64_t kv_head, RowRange keys) const {
    kernels::StoredTile tile;
    describe(batch, kv_head, keys, tile);
    return tile;
  }
};

}}  // namespace heed::v0
