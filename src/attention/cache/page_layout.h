// The division of the memory of pages; kernels/decode/stored_tile.h has the layout of a group.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/kernels/decode/stored_tile.h"
#include "heed/attention/kv_cache.h"

namespace heed { inline namespace v0 { namespace detail {

// The place of a quantised number in a group: a byte, and the lowest of its bits.
struct QuantisedPlace {
  std::int64_t byte = 0;
  int shift = 0;
};

// The part of a page that belongs to one key head: groups of a block from `first_group` on.
template <class Byte>
struct PagePart {
  Byte* block = nullptr;
  std::int64_t first_group = 0;

  // NOLINTNEXTLINE(google-explicit-constructor): adds const, as pointers do.
  operator PagePart<const Byte>() const { return {block, first_group}; }
};

// The keys or the values in the part of a block that belongs to one key head.
struct SideLayout {
  KvStorage storage = KvStorage::kFloat32;
  bool is_columns = false;
  std::int64_t dim = 0;         // the dimension of given rows
  std::int64_t stored_dim = 0;  // the dimension of stored rows, which is larger if they are rotated
  // In bytes:
  std::int64_t row_stride = 0;  // the distance of rows
  std::int64_t group_bytes = 0;
  std::int64_t scale_bytes = 0;  // of a group; 0 without scales
  std::int64_t groups_at = 0;    // from the beginning of a block
  std::int64_t scales_at = 0;

  bool is_rotated() const { return kernels::traits_of(storage).is_rotated; }
  bool scales_blocks() const { return kernels::traits_of(storage).scales_blocks; }
  bool is_quantised() const { return scale_bytes != 0; }
  // The place in a group of dimension d of position `lane`, for quantised numbers.
  QuantisedPlace place(std::int64_t lane, std::int64_t d) const {
    using kernels::kGroupKeys;
    using kernels::kQuad;
    using kernels::kScaleDims;
    // The bytes of the quads of positions before.
    const std::int64_t rows = lane / kQuad * kQuad * row_stride;
    if (!scales_blocks()) {
      return {is_columns ? (d / kQuad * kGroupKeys + lane) * kQuad + d % kQuad
                         : rows + d * kQuad + lane % kQuad};
    }
    constexpr std::int64_t kHalf = kScaleDims / 2;
    if (is_columns) {
      return {(d / (2 * kQuad) * kGroupKeys + lane) * kQuad + d % kQuad,
              static_cast<int>(d / kQuad % 2 * 4)};
    }
    return {rows + (d / kScaleDims * kHalf + d % kHalf) * kQuad + lane % kQuad,
            static_cast<int>(d / kHalf % 2 * 4)};
  }
  // The index among the scales of a group of that of dimension d of position `lane`.
  std::int64_t scale_index(std::int64_t lane, std::int64_t d) const {
    const std::int64_t block = scales_blocks() ? d / kernels::kScaleDims : 0;
    return block * kernels::kGroupKeys + lane;
  }
  // Group g of a page.
  template <class Byte>
  Byte* group(PagePart<Byte> part, std::int64_t g) const {
    return part.block + groups_at + (part.first_group + g) * group_bytes;
  }
  // The scales of group g of a page; null if there are none.
  const float* scales(PagePart<const std::byte> part, std::int64_t g) const {
    if (!is_quantised()) return nullptr;
    const std::byte* const at = part.block + scales_at + (part.first_group + g) * scale_bytes;
    return reinterpret_cast<const float*>(at);
  }
  float* scales(PagePart<std::byte> part, std::int64_t g) const {
    return const_cast<float*>(scales(PagePart<const std::byte>(part), g));
  }
};

// Several pages share a block, which has room for a tile: for each key head the groups of keys of a
// tile, then those of values, each beginning at a cache line. Scales of int8 come before the groups
// they belong to, so that a single query reads all of a block in order; those of int4 come after
// the values. Pages of every size are thus read as fast as the largest ones, if a sequence has all
// pages of a block.
struct PageLayout {
  std::int64_t num_kv_heads = 0;
  std::int64_t page_size = 0;
  SideLayout key;
  SideLayout value;
  std::int64_t block_bytes = 0;  // for one key head

  PageLayout() = default;
  // Throws InvalidArgument if the layout is too large for 64-bit sizes.
  explicit PageLayout(const KvConfig& config);

  std::int64_t page_groups() const { return page_size / kernels::kGroupKeys; }
  std::int64_t block_pages() const { return kernels::kTileKeys / page_size; }
  std::int64_t page_bytes() const { return num_kv_heads * block_bytes / block_pages(); }
  // The number of pages for `positions` positions.
  std::int64_t pages(std::int64_t positions) const {
    return (positions + page_size - 1) / page_size;
  }
};

}}}  // namespace heed::v0::detail
