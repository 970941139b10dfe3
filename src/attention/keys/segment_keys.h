// A range of the keys and values, in tensors of its own.
#pragma once

#include <cstdint>

#include "attention/keys/key_source.h"
#include "attention/keys/tensor_keys.h"

namespace heed { inline namespace v0 {

// The keys from `first` on, as tensors of their own. No other keys may be read.
template <class Real>
class SegmentKeys final : public KeySource<Real> {
 public:
  SegmentKeys(const TensorKeys<Real>& keys, std::int64_t first) : keys_(keys), first_(first) {}

  kernels::BasicTile<Real> tile(std::int64_t batch, std::int64_t kv_head, RowRange keys,
                                const Staging<Real>& staging) const override {
    auto tile = keys_.tile(batch, kv_head, within(keys), staging);
    tile.first_key += static_cast<std::int32_t>(first_);
    return tile;
  }
  void describe(std::int64_t batch, std::int64_t kv_head, RowRange keys,
                kernels::StoredTile& tile) const override {
    keys_.describe(batch, kv_head, within(keys), tile);
    tile.first_key += static_cast<std::int32_t>(first_);
  }

 private:
  RowRange within(RowRange keys) const { return {keys.begin - first_, keys.end - first_}; }

  TensorKeys<Real> keys_;
  std::int64_t first_;
};

}}  // namespace heed::v0
