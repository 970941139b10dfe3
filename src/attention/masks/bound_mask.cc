#include "attention/masks/bound_mask.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "attention/masks/query_offsets.h"

namespace heed { inline namespace v0 {

namespace {

// Masks, score modifications and dropout use 32-bit positions.
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
  check_count("mask", shape);
  for_each_offset(shape.query_offset, [&](const std::string& name, std::int64_t offset) {
    if (offset >= -kMaxPosition && offset <= kMaxPosition - shape.q_len) return;
    throw InvalidArgument(
        fmt::format("mask: {} is {} with {} queries, but positions are 32-bit integers", name,
                    offset, shape.q_len));
  });
}

}  // namespace

BoundMask::BoundMask(const Mask& mask, const ScoreShape& shape)
    : parts_(mask),
      shape_(shape),
      is_structural_(parts_.is_structural()),
      depends_on_head_(parts_.depends_on_head()),
      adds_(parts_.adds()),
      query_step_(parts_.query_step()) {
  check_positions(shape);
  parts_.check(shape_);
}

template <class Real>
void BoundMask::fill_added(const kernels::BasicScoreTile<Real>& tile,
                           const kernels::BasicScoreLoops<Real>& loops) const {
  const std::int64_t width = tile.width;
  std::fill(tile.scores + tile.begin * width, tile.scores + tile.end * width, Real{0});
  parts_.add(shape_, tile, loops);
}

template void BoundMask::fill_added(const kernels::BasicScoreTile<float>&,
                                    const kernels::BasicScoreLoops<float>&) const;
template void BoundMask::fill_added(const kernels::BasicScoreTile<double>&,
                                    const kernels::BasicScoreLoops<double>&) const;

}}  // namespace heed::v0
