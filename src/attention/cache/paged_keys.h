// Keys and values on the pages of a cache.
#pragma once

#include <cstdint>

#include "attention/cache/sequence_state.h"
#include "attention/kernels/decode/stored_tile.h"
#include "attention/keys/key_source.h"

namespace heed { inline namespace v0 {

// Positions that are gone are zeros. The state must outlive it and stay as it is.
class PagedKeys final : public KeySource<float> {
 public:
  // The kernels of `table`, unless it is null, read some storages faster.
  PagedKeys(const kernels::KernelTable* table, const detail::SequenceState& state)
      : table_(table), state_(&state) {}

  const detail::SequenceState& sequence() const { return *state_; }

  // As rows of float: of values that lie so already, where they are. Those of int4 are rotated.
  kernels::Tile tile(std::int64_t batch, std::int64_t kv_head, RowRange keys,
                     const Staging<float>& staging) const override;

  // These keys begin a tile.
  void describe(std::int64_t batch, std::int64_t kv_head, RowRange keys,
                kernels::StoredTile& tile) const override;

 private:
  // The part of the page with this position that a key head has.
  detail::PagePart<const std::byte> part(std::int64_t kv_head, std::int64_t position) const;
  // The rows of some positions as floats, in `staged`.
  void load(const detail::SideLayout& side, std::int64_t kv_head, RowRange keys,
            float* staged) const;
  std::int64_t round_to_pairs(float* rows, std::int64_t count, std::int64_t dim) const;
  // Where values are floats and follow each other without gaps; null otherwise.
  const float* values_in_place(std::int64_t kv_head, RowRange keys) const;

  const kernels::KernelTable* table_;
  const detail::SequenceState* state_;
};

}}  // namespace heed::v0
