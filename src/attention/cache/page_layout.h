// How the memory of pages is divided: kernels/stored_tile.h says how a group of positions lies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/kernels/decode/stored_tile.h"
#include "heed/attention/kv_cache.h"

namespace heed { inline namespace v0 { namespace detail {

// Where a group has a quantised number: in which byte, from which bit of it on.
struct QuantisedPlace {
  std::int64_t byte = 0;
  int shift = 0;
};

// What one key head has of a page: groups of a block from `first_group` on.
template <class Byte>
struct PagePart {
  Byte* block = nullptr;
  std::int64_t first_group = 0;

  // NOLINTNEXTLINE(google-explicit-constructor): what may be written may be read.
  operator PagePart<const Byte>() const { return {block, first_group}; }
};

// One side of what a key head has of a block: the keys or the values.
struct SideLayout {
  KvStorage storage = KvStorage::kFloat32;
  bool is_columns = false;
  std::int64_t dim = 0;         // of the rows that are given
  std::int64_t stored_dim = 0;  // of the rows that are stored: more where they are rotated
  // In bytes:
  std::int64_t row_stride = 0;  // of rows
  std::int64_t group_bytes = 0;
  std::int64_t scale_bytes = 0;  // of a group; 0: it has no scales
  std::int64_t groups_at = 0;    // of a block, from where that begins
  std::int64_t scales_at = 0;

  bool is_rotated() const { return storage == KvStorage::kInt4; }
  bool is_quantised() const { return scale_bytes != 0; }
  // Where a group has dimension d of position `lane`, of quantised numbers.
  QuantisedPlace place(std::int64_t lane, std::int64_t d) const {
    using kernels::kGroupKeys;
    using kernels::kQuad;
    using kernels::kScaleDims;
    const std::int64_t rows = lane / kQuad * kQuad * row_stride;  // of quads of positions before
    if (storage == KvStorage::kInt8) {
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
  // Where the scales of a group have that of dimension d of position `lane`.
  std::int64_t scale_index(std::int64_t lane, std::int64_t d) const {
    const std::int64_t block = storage == KvStorage::kInt4 ? d / kernels::kScaleDims : 0;
    return block * kernels::kGroupKeys + lane;
  }
  // Group g of a page.
  template <class Byte>
  Byte* group(PagePart<Byte> part, std::int64_t g) const {
    return part.block + groups_at + (part.first_group + g) * group_bytes;
  }
  // Its scales: null where there are none.
  const float* scales(PagePart<const std::byte> part, std::int64_t g) const {
    if (!is_quantised()) return nullptr;
    const std::byte* const at = part.block + scales_at + (part.first_group + g) * scale_bytes;
    return reinterpret_cast<const float*>(at);
  }
  float* scales(PagePart<std::byte> part, std::int64_t g) const {
    return const_cast<float*>(scales(PagePart<const std::byte>(part), g));
  }
};

// Pages share a block, which has room for a tile: for each key head as many groups of keys as fill
// it, then the values, each beginning a cache line. Scales of int8 lie before what they belong to,
// so that one query reads all of a block in its order, those of int4 behind the values. So pages of
// every size are read as fast as the largest, where a sequence has all pages of a block.
struct PageLayout {
  std::int64_t num_kv_heads = 0;
  std::int64_t page_size = 0;
  SideLayout key;
  SideLayout value;
  std::int64_t block_bytes = 0;  // of a key head

  PageLayout() = default;
  // Throws InvalidArgument when it would be too large to be numbered.
  explicit PageLayout(const KvConfig& config);

  std::int64_t page_groups() const { return page_size / kernels::kGroupKeys; }
  std::int64_t block_pages() const { return kernels::kTileKeys / page_size; }
  std::int64_t page_bytes() const { return num_kv_heads * block_bytes / block_pages(); }
  // Pages that so many positions take.
  std::int64_t pages(std::int64_t positions) const {
    return (positions + page_size - 1) / page_size;
  }
};

}}}  // namespace heed::v0::detail
