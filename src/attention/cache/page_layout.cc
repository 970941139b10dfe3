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
  constexpr auto kScale = static_cast<std::int64_t>(sizeof(float));
  SideLayout side{.storage = storage, .is_columns = is_columns, .dim = dim, .stored_dim = dim};
  switch (storage) {
    case KvStorage::kFloat32:
      side.row_stride = dim * 4;
      break;
    case KvStorage::kFloat16:
    case KvStorage::kBFloat16:
      side.row_stride = dim * 2;
      break;
    case KvStorage::kInt8:
      side.row_stride = kernels::quantised_row_bytes(storage, is_columns, dim);
      side.scale_bytes = cache_lines(kGroupKeys * kScale);
      break;
    case KvStorage::kInt4:
      side.stored_dim = rounded_up(dim, kScaleDims);
      side.row_stride = kernels::quantised_row_bytes(storage, is_columns, dim);
      side.scale_bytes = cache_lines(kGroupKeys * side.stored_dim / kScaleDims * kScale);
      break;
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
  // Scales are before the groups that are read in order; for int4 they are after all groups.
  for (SideLayout* const side : {&key, &value}) {
    if (side->storage != KvStorage::kInt4) side->scales_at = place(side->scale_bytes);
    side->groups_at = place(side->group_bytes);
  }
  for (SideLayout* const side : {&key, &value}) {
    if (side->storage == KvStorage::kInt4) side->scales_at = place(side->scale_bytes);
  }
  checked_multiply(num_kv_heads, block_bytes);
}

}}}  // namespace heed::v0::detail
