// Keys and values in the pages of a cache.
#pragma once

#include <cstdint>

#include "attention/cache/sequence_state.h"
#include "attention/kernels/decode/stored_tile.h"
#include "attention/keys/key_source.h"

namespace heed { inline namespace v0 {

// The source of the keys of one sequence. Positions that were dropped are zeros. The state must
// outlive this object and must not change.
class PagedKeys final : public KeySource<float> {
 public:
  // Unless it is null, `table` has kernels that read some storages faster.
  PagedKeys(const kernels::KernelTable* table, const detail::SequenceState& state)
      : table_(table), state_(&state) {}

  const detail::SequenceState& sequence() const { return *state_; }

  // As rows of float; values that are stored in this form are not copied. Those of int4 are
  // rotated.
  kernels::Tile tile(std::int64_t batch, std::int64_t kv_head, RowRange keys,
                     const Staging<float>& staging) const override;

  // `keys` must begin a tile.
  void describe(std::int64_t batch, std::int64_t kv_head, RowRange keys,
                kernels::StoredTile& tile) const override;

 private:
  // The part that a key head has of the page with this position.
  detail::PagePart<const std::byte> part(std::int64_t kv_head, std::int64_t position) const;
  // Converts the rows of some positions to floats, in `staged`.
  void load(const detail::SideLayout& side, std::int64_t kv_head, RowRange keys,
            float* staged) const;
  std::int64_t round_to_pairs(float* rows, std::int64_t count, std::int64_t dim) const;
  // The values of some positions, if they are stored as floats and contiguous; otherwise null.
  const float* values_in_place(std::int64_t kv_head, RowRange keys) const;

  const kernels::KernelTable* table_;
  const detail::SequenceState* state_;
};

}}  // namespace heed::v0
