#include "attention/masks/bound_mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

namespace heed::inline v0 {

namespace {

// Masks, score modifications and dropout address positions with 32 bits.
constexpr std::int64_t kMaxPosition = std::numeric_limits<std::int32_t>::max();

void check_positions(const ScoreShape& shape) {
  const std::pair<const char*, std::int64_t> lengths[] = {{"batch", shape.batch},
                                                          {"num_heads", shape.num_heads},
                                                          {"q_len", shape.q_len},
                                                          {"kv_len", shape.kv_len}};
  for (const auto& [name, length] : lengths) {
    if (length < 0 || length > kMaxPosition) {
      throw InvalidArgument(
          fmt::format("mask: {} is {}, expected 0 to {}", name, length, kMaxPosition));
    }
  }
  if (shape.query_offset < -kMaxPosition || shape.query_offset > kMaxPosition - shape.q_len) {
    throw InvalidArgument(
        fmt::format("mask: query_offset is {} with {} queries, but positions are 32-bit integers",
                    shape.query_offset, shape.q_len));
  }
}

}  // namespace

BoundMask::BoundMask(const Mask& mask, const ScoreShape& shape)
    : mask_(mask),
      shape_(shape),
      is_structural_(std::all_of(mask_.parts().begin(), mask_.parts().end(),
                                 [](const auto& part) { return part->is_structural(); })),
      depends_on_head_(std::any_of(mask_.parts().begin(), mask_.parts().end(),
                                   [](const auto& part) { return part->depends_on_head(); })) {
  check_positions(shape);
  for (const auto& part : mask_.parts()) part->check(shape_);
}

RowRange BoundMask::range(const AttentionRow& row) const {
  RowRange keys{0, shape_.kv_len};
  for (const auto& part : mask_.parts()) keys = keys & part->range(shape_, row);
  return keys.begin < keys.end ? keys : RowRange{};
}

bool BoundMask::visible(const detail::ScoreIndex& at) const {
  const RowRange keys = range({at.batch, at.head, at.q});
  return at.k >= keys.begin && at.k < keys.end &&
         std::all_of(mask_.parts().begin(), mask_.parts().end(),
                     [&](const auto& part) { return part->visible(shape_, at); });
}

float BoundMask::added(const detail::ScoreIndex& at) const {
  float sum = 0;
  for (const auto& part : mask_.parts()) sum += part->added(at);
  return sum;
}

std::int64_t BoundMask::next_key(const detail::RowGroup& rows, std::int64_t key) const {
  // Every part must agree to a tile; each answer moves the question on.
  for (bool moved = true; moved && key < shape_.kv_len;) {
    moved = false;
    for (const auto& part : mask_.parts()) {
      const std::int64_t next =
          part->next_key(shape_, rows, key) / kernels::kTileKeys * kernels::kTileKeys;
      moved = moved || next > key;
      key = std::max(key, next);
    }
  }
  return key;
}

kernels::Visibility BoundMask::visibility(const detail::RowGroup& rows, RowRange keys) const {
  auto all = kernels::Visibility::kAll;
  for (const auto& part : mask_.parts()) {
    const auto one = part->visibility(shape_, rows, keys);
    if (one == kernels::Visibility::kNone) return one;
    if (one == kernels::Visibility::kMixed) all = one;
  }
  return all;
}

template <class Real>
void BoundMask::fill(const kernels::BasicScoreTile<Real>& tile,
                     const kernels::BasicKernelTable<Real>& table) const {
  const std::int64_t width = tile.width;
  std::fill(tile.scores + tile.begin * width, tile.scores + tile.end * width, Real{0});
  for (const auto& part : mask_.parts()) part->hide(shape_, tile, table);
}

template void BoundMask::fill(const kernels::BasicScoreTile<float>&,
                              const kernels::BasicKernelTable<float>&) const;
template void BoundMask::fill(const kernels::BasicScoreTile<double>&,
                              const kernels::BasicKernelTable<double>&) const;

}  // namespace heed::inline v0
