// The mask as a value: its parts, and what they come to as a tensor or as text.
#include "heed/mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "attention/masks/all_of.h"
#include "attention/masks/bound_mask.h"
#include "attention/masks/mask_part.h"
#include "heed/cancellation.h"
#include "heed/parallel.h"

namespace heed::inline v0 {

namespace {

using detail::ScoreIndex;

// Builds [batch, num_heads, q_len, kv_len] from what `value_of(bound mask, index)` says of each
// score.
template <class T, class ValueOf>
Tensor<T> materialize(const Mask& mask, const ScoreShape& shape, ValueOf value_of) {
  const BoundMask bound(mask, shape);
  auto result = Tensor<T>::uninitialized({shape.batch, shape.num_heads, shape.q_len, shape.kv_len});
  T* out = result.data();
  ScoreIndex at{};
  for (at.batch = 0; at.batch < shape.batch; ++at.batch)
    for (at.head = 0; at.head < shape.num_heads; ++at.head)
      for (at.q = 0; at.q < shape.q_len; ++at.q) {
        check_cancelled();
        for (at.k = 0; at.k < shape.kv_len; ++at.k) *out++ = value_of(bound, at);
      }
  return result;
}

// How many keys one query of the batch sees.
std::int64_t visible_keys(const BoundMask& mask, const detail::ScoreIndex& row) {
  const ScoreShape& shape = mask.shape();
  const RowRange range = mask.range({row.batch, row.head, row.q});
  if (mask.is_structural()) return range.end - range.begin;
  const auto head = static_cast<std::int32_t>(row.head);
  const auto position = static_cast<std::int32_t>(row.q + shape.query_offset[row.batch]);
  const detail::RowGroup rows{static_cast<std::int32_t>(row.batch), 1, &head, &position};
  std::int64_t count = 0;
  for (std::int64_t key =
           mask.next_key(rows, range.begin / kernels::kTileKeys * kernels::kTileKeys);
       key < range.end; key = mask.next_key(rows, key)) {
    const std::int64_t tile = key / kernels::kTileKeys * kernels::kTileKeys;
    const std::int64_t next = tile + kernels::kTileKeys;
    const RowRange keys{std::max(key, range.begin), std::min(next, range.end)};
    auto seen = detail::KeyBits::between(keys.begin - tile, keys.end - tile);
    mask.hide(rows, keys, &seen);
    for (std::int64_t j = 0; mask.adds() && j < kernels::kTileKeys; ++j) {
      if (seen.has(j) && !mask.visible({row.batch, row.head, row.q, tile + j})) seen.clear(j);
    }
    count += seen.count();
    key = next;
  }
  return count;
}

void check_index(const char* name, std::int64_t index, std::int64_t extent) {
  if (index < 0 || index >= extent) {
    throw InvalidArgument(
        fmt::format("to_lines: {} is {}, expected 0 to {}", name, index, extent - 1));
  }
}

}  // namespace

Mask::Mask() = default;
Mask::Mask(std::shared_ptr<const detail::MaskPart> part) : parts_{std::move(part)} {}

Mask operator&(const Mask& a, const Mask& b) {
  Mask both = a;
  both.parts_.insert(both.parts_.end(), b.parts_.begin(), b.parts_.end());
  return both;
}

std::string Mask::description() const { return detail::AllOf(*this).description(); }

Tensor<bool> materialize_allow(const Mask& mask, const ScoreShape& shape) {
  return materialize<bool>(
      mask, shape, [](const BoundMask& bound, const ScoreIndex& at) { return bound.visible(at); });
}

Tensor<bool> materialize_block(const Mask& mask, const ScoreShape& shape) {
  return materialize<bool>(
      mask, shape, [](const BoundMask& bound, const ScoreIndex& at) { return !bound.visible(at); });
}

Tensor<float> materialize_additive(const Mask& mask, const ScoreShape& shape) {
  return materialize<float>(mask, shape, [](const BoundMask& bound, const ScoreIndex& at) {
    return bound.visible(at) ? bound.added(at) : -std::numeric_limits<float>::infinity();
  });
}

std::int64_t count_visible(const Mask& mask, const ScoreShape& shape) {
  const BoundMask bound(mask, shape);
  std::atomic<std::int64_t> count = 0;
  for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
    for (std::int64_t head = 0; head < shape.num_heads; ++head) {
      parallel_for(0, shape.q_len, 64, [&](std::int64_t first, std::int64_t last) {
        std::int64_t some = 0;
        for (std::int64_t q = first; q < last; ++q) {
          check_cancelled();
          some += visible_keys(bound, {batch, head, q, 0});
        }
        count += some;
      });
    }
  }
  return count;
}

std::vector<std::string> to_lines(const Mask& mask, const ScoreShape& shape,
                                  const MaskGlyphs& glyphs, std::int64_t batch, std::int64_t head) {
  check_index("batch", batch, shape.batch);
  check_index("head", head, shape.num_heads);
  const BoundMask bound(mask, shape);
  std::vector<std::string> lines(static_cast<std::size_t>(shape.q_len));
  for (std::int64_t q = 0; q < shape.q_len; ++q) {
    check_cancelled();
    std::string& line = lines[static_cast<std::size_t>(q)];
    for (std::int64_t k = 0; k < shape.kv_len; ++k) {
      if (k != 0) line += glyphs.between;
      line += bound.visible({batch, head, q, k}) ? glyphs.visible : glyphs.masked;
    }
  }
  return lines;
}

}  // namespace heed::inline v0
