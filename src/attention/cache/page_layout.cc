#include "attention/cache/page_layout.h"

#include "attention/kernels/decode/stored_tile.h"
#include "core/arena.h"

namespace heed { inline namespace v0 { namespace detail {

namespace {

using kernels::kGroupKeys;
using kernels::kScaleDims;
using kernels::kTileKeys;

std::int64_t rounded_up(std::int64_t number, std::int64_t unit) {
  return (number + unit - 1) / unit * unit;
}

std::int64_t cache_lines(std::int64_t bytes) {
  return rounded_up(bytes, static_cast<std::int64_t>(engine::kCacheLine));
}

SideLayout describe(KvStorage storage, bool is_columns, std::int64_t dim) {
  const kernels::StorageTraits& traits = kernels::traits_of(storage);
  SideLayout side{.storage = storage, .is_columns = is_columns, .dim = dim, .stored_dim = dim};
  if (traits.is_rotated) side.stored_dim = rounded_up(dim, kScaleDims);
  side.row_stride = kernels::row_bytes(storage, is_columns, dim);
  if (traits.is_quantised()) {
    const std::int64_t scales = traits.scales_blocks ? side.stored_dim / kScaleDims : 1;
    side.scale_bytes = cache_lines(kGroupKeys * scales * static_cast<std::int64_t>(sizeof(float)));
  }
  side.group_bytes = cache_lines(kGroupKeys * side.row_stride);
  return side;
}

}  // namespace

PageLayout::PageLayout(const KvConfig& config)
    : num_kv_heads(config.num_kv_heads),
      page_size(config.page_size),
      key(describe(config.key_storage, true, config.head_dim)),
      value(describe(config.value_storage, false, config.value_dim.value_or(config.head_dim))) {
  const auto place = [&](std::int64_t group_bytes) {
    const std::int64_t at = block_bytes;
    block_bytes += kTileKeys / kGroupKeys * group_bytes;
    return at;
  };
  // One scale for a row is before the groups, which are read in order; several are after all
  // groups.
  for (SideLayout* const side : {&key, &value}) {
    if (!side->scales_blocks()) side->scales_at = place(side->scale_bytes);
    side->groups_at = place(side->group_bytes);
  }
  for (SideLayout* const side : {&key, &value}) {
    if (side->scales_blocks()) side->scales_at = place(side->scale_bytes);
  }
  checked_multiply(num_kv_heads, block_bytes);
}

}}}  // namespace heed::v0::detail
