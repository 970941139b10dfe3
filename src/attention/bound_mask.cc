#include "attention/bound_mask.h"

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

BoundMask::BoundMask(const Mask& mask, const ScoreShape& shape) : mask_(mask), shape_(shape) {
  check_positions(shape);
  for (const auto& part : mask_.parts()) part->check(shape_);
}

RowRange BoundMask::range(std::int64_t batch, std::int64_t q) const {
  RowRange keys{0, shape_.kv_len};
  for (const auto& part : mask_.parts()) keys = keys & part->range(shape_, batch, q);
  return keys.begin < keys.end ? keys : RowRange{};
}

bool BoundMask::visible(const detail::Cell& cell) const {
  const RowRange keys = range(cell.batch, cell.q);
  return cell.k >= keys.begin && cell.k < keys.end &&
         std::all_of(mask_.parts().begin(), mask_.parts().end(),
                     [&](const auto& part) { return part->visible(shape_, cell); });
}

float BoundMask::added(const detail::Cell& cell) const {
  float sum = 0;
  for (const auto& part : mask_.parts()) sum += part->added(cell);
  return sum;
}

bool BoundMask::is_structural() const {
  return std::all_of(mask_.parts().begin(), mask_.parts().end(),
                     [](const auto& part) { return part->is_structural(); });
}

void BoundMask::fill(const detail::ScoreTile& tile, const kernels::KernelTable& table) const {
  const std::int64_t width = tile.width;
  std::fill(tile.scores + tile.begin * width, tile.scores + tile.end * width, 0.0F);
  for (const auto& part : mask_.parts()) part->hide(shape_, tile, table);
}

}  // namespace heed::inline v0
