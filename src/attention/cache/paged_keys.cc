#include "attention/cache/paged_keys.h"

#include <algorithm>
#include <cstring>

#include "attention/cache/stored_rows.h"

namespace heed { inline namespace v0 {

using detail::PageLayout;
using detail::PagePart;
using detail::SideLayout;
using kernels::kGroupKeys;
using kernels::StoredNumbers;

namespace {

// Sets the members that are the same for all groups.
void start(const SideLayout& side, StoredNumbers& numbers) {
  numbers.storage = side.storage;
  numbers.is_columns = side.is_columns;
  numbers.row_stride = side.row_stride;
}

// Points `groups` of a tile to the groups of a page.
void point_at(const SideLayout& side, PagePart<const std::byte> page, RowRange groups,
              StoredNumbers& numbers) {
  const auto first = static_cast<std::size_t>(groups.begin);
  const auto end = static_cast<std::size_t>(groups.end);
  const std::byte* const group = side.group(page, 0);
  for (std::size_t g = first; g < end; ++g) {
    numbers.groups[g] = group + static_cast<std::int64_t>(g - first) * side.group_bytes;
  }
  if (!side.is_quantised()) return;
  for (std::size_t g = first; g < end; ++g) {
    numbers.scales[g] = side.scales(page, static_cast<std::int64_t>(g - first));
  }
}

}  // namespace

PagePart<const std::byte> PagedKeys::part(std::int64_t kv_head, std::int64_t position) const {
  const detail::Page* const page = state_->pages[position / state_->pool->layout().page_size];
  if (page == nullptr) return state_->pool->zeros();
  return page->part(kv_head);
}

void PagedKeys::load(const SideLayout& side, std::int64_t kv_head, RowRange keys,
                     float* staged) const {
  const std::int64_t page_size = state_->pool->layout().page_size;
  for (std::int64_t key = keys.begin; key < keys.end;) {
    const std::int64_t slot = key % page_size;
    const std::int64_t count = std::min(keys.end - key, page_size - slot);
    detail::load_rows(table_, side, part(kv_head, key), {slot, slot + count}, staged);
    staged += count * side.stored_dim;
    key += count;
  }
}

const float* PagedKeys::values_in_place(std::int64_t kv_head, RowRange keys) const {
  const PageLayout& layout = state_->pool->layout();
  if (layout.value.storage != KvStorage::kFloat32) return nullptr;
  const auto group_of = [&](std::int64_t key) {
    return layout.value.group(part(kv_head, key), key % layout.page_size / kGroupKeys);
  };
  const std::byte* const first = group_of(keys.begin);
  // The pages must be contiguous, each beginning where the one before it ends.
  const std::int64_t second_page = (keys.begin / layout.page_size + 1) * layout.page_size;
  for (std::int64_t key = second_page; key < keys.end; key += layout.page_size) {
    const std::int64_t groups = (key - keys.begin / kGroupKeys * kGroupKeys) / kGroupKeys;
    if (group_of(key) != first + groups * layout.value.group_bytes) return nullptr;
  }
  return reinterpret_cast<const float*>(first) + keys.begin % kGroupKeys * layout.value.stored_dim;
}

kernels::Tile PagedKeys::tile(std::int64_t /*batch*/, std::int64_t kv_head, RowRange keys,
                              const Staging<float>& staging) const {
  const PageLayout& layout = state_->pool->layout();
  kernels::Tile tile;
  tile.first_key = static_cast<std::int32_t>(keys.begin);
  tile.num_keys = static_cast<std::int32_t>(keys.end - keys.begin);
  if (staging.key != nullptr) load(layout.key, kv_head, keys, staging.key);
  tile.key = staging.key;
  tile.key_stride = layout.key.stored_dim;
  tile.value = values_in_place(kv_head, keys);
  tile.value_stride = layout.value.stored_dim;
  if (tile.value == nullptr && staging.value != nullptr) {
    load(layout.value, kv_head, keys, staging.value);
    tile.value = staging.value;
  }
  if (staging.has_pairs) {
    tile.key_stride = round_to_pairs(staging.key, tile.num_keys, layout.key.stored_dim);
    tile.value_stride = round_to_pairs(staging.value, tile.num_keys, layout.value.stored_dim);
  }
  return tile;
}

// Converts numbers that come from bfloat16 back to bfloat16, in place; odd rows are padded with 0.
std::int64_t PagedKeys::round_to_pairs(float* rows, std::int64_t count, std::int64_t dim) const {
  const std::int64_t stride = (dim + 1) / 2;
  for (std::int64_t k = 0; k < count; ++k) {
    auto* const row = reinterpret_cast<std::byte*>(rows + k * stride);
    table_->narrow(DataType::kBFloat16, rows + k * dim, dim, row);
    if (dim % 2 != 0) std::memset(row + dim * 2, 0, 2);
  }
  return stride;
}

void PagedKeys::describe(std::int64_t /*batch*/, std::int64_t kv_head, RowRange keys,
                         kernels::StoredTile& tile) const {
  const PageLayout& layout = state_->pool->layout();
  tile.first_key = static_cast<std::int32_t>(keys.begin);
  tile.num_keys = static_cast<std::int32_t>(keys.end - keys.begin);
  start(layout.key, tile.key);
  start(layout.value, tile.value);
  RowRange groups{0, layout.page_groups()};
  for (std::int64_t key = keys.begin; key < keys.end; key += layout.page_size) {
    const PagePart<const std::byte> page = part(kv_head, key);
    point_at(layout.key, page, groups, tile.key);
    point_at(layout.value, page, groups, tile.value);
    groups = {groups.end, groups.end + layout.page_groups()};
  }
}

}}  // namespace heed::v0
