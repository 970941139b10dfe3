// The class Mask: its parts, its tensors and its text.
#include "heed/attention/mask.h"

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
#include "heed/core/cancellation.h"
#include "heed/core/parallel.h"

namespace heed { inline namespace v0 {

namespace {

using detail::ScoreIndex;
using kernels::kTileKeys;

// Builds [batch, num_heads, q_len, kv_len] from value_of(bound mask, index) of each score.
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

// Counts the keys that queries of a head see, for the rows of a panel at a time.
class VisibleKeys {
 public:
  explicit VisibleKeys(const BoundMask& mask) : mask_(mask) {}

  // The sum over the queries first.q ≤ q < end.
  std::int64_t count(const ScoreIndex& first, std::int64_t end) {
    std::int64_t sum = 0;
    for (ScoreIndex at = first; at.q < end; at.q += kernels::kMaxPanelWidth) {
      check_cancelled();
      const auto rows = std::min<std::int64_t>(kernels::kMaxPanelWidth, end - at.q);
      sum += mask_.is_structural() ? count_ranges(at, rows) : count_group(at, rows);
    }
    return sum;
  }

 private:
  std::int64_t count_ranges(const ScoreIndex& first, std::int64_t num_rows) const {
    std::int64_t sum = 0;
    for (std::int64_t r = 0; r < num_rows; ++r) {
      const RowRange keys = mask_.range({first.batch, first.head, first.q + r});
      sum += keys.end - keys.begin;
    }
    return sum;
  }

  std::int64_t count_group(const ScoreIndex& first, std::int64_t num_rows) {
    const ScoreShape& shape = mask_.shape();
    for (std::int64_t r = 0; r < num_rows; ++r) {
      heads_[static_cast<std::size_t>(r)] = static_cast<std::int32_t>(first.head);
      positions_[static_cast<std::size_t>(r)] =
          static_cast<std::int32_t>(first.q + r + shape.query_offset[first.batch]);
    }
    const detail::RowGroup rows{static_cast<std::int32_t>(first.batch),
                                static_cast<std::int32_t>(num_rows), heads_.data(),
                                positions_.data()};
    const auto [of_all, of_any] = mask_.ranges(rows);
    std::int64_t sum = 0;
    const std::int64_t begin = std::max<std::int64_t>(of_any.begin, 0);
    const std::int64_t end = std::min(of_any.end, shape.kv_len);
    for (std::int64_t key = mask_.next_key(rows, begin / kTileKeys * kTileKeys); key < end;) {
      const std::int64_t tile = key / kTileKeys * kTileKeys;
      const RowRange keys{std::max(tile, begin), std::min(tile + kTileKeys, end)};
      const bool is_whole =
          (keys & of_all) == keys && mask_.visibility(rows, keys) == kernels::Visibility::kAll;
      sum += is_whole ? num_rows * (keys.end - keys.begin) : count_tile(first, rows, keys);
      key = mask_.next_key(rows, tile + kTileKeys);
    }
    return sum;
  }

  std::int64_t count_tile(const ScoreIndex& first, const detail::RowGroup& rows, RowRange keys) {
    const std::int64_t first_key = detail::tile_of(keys);
    mask_.see(rows, keys, seen_.data());
    std::int64_t sum = 0;
    for (std::int64_t r = 0; r < rows.num_rows; ++r) {
      detail::KeyBits& seen = seen_[static_cast<std::size_t>(r)];
      for (std::int64_t j = 0; mask_.adds() && j < kTileKeys; ++j) {
        const ScoreIndex at{first.batch, first.head, first.q + r, first_key + j};
        if (seen.has(j) && !mask_.visible(at)) seen.clear(j);
      }
      sum += seen.count();
    }
    return sum;
  }

  const BoundMask& mask_;
  std::array<std::int32_t, kernels::kMaxPanelWidth> heads_;
  std::array<std::int32_t, kernels::kMaxPanelWidth> positions_;
  detail::RowBits seen_;
};

void check_index(const char* name, std::int64_t index, std::int64_t extent) {
  if (index < 0 || index >= extent) {
    throw InvalidArgument(
        fmt::format("to_lines: {} is {}, but the shape has {}", name, index, extent));
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
        count += VisibleKeys(bound).count({batch, head, first, 0}, last);
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

}}  // namespace heed::v0
