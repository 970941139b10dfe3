// The tiles that some rows of a request visit, computed without its tensors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/engine/tile_map.h"
#include "attention/request/request.h"

namespace heed { inline namespace v0 { namespace engine {

// At most kMaxPanelWidth rows of one batch entry, in the order of a panel.
template <class Real>
class RowTiles {
 public:
  explicit RowTiles(const Request<Real>& request)
      : request_(request),
        runs_(static_cast<std::size_t>(std::max<std::int64_t>(
            1, TileMap::capacity(!request.mask.is_structural(), request.shape.kv_len)))),
        tiles_(runs_.data()) {}

  void clear(std::int64_t batch) {
    batch_ = batch;
    heads_.clear();
    positions_.clear();
    seen_by_any_ = {request_.shape.kv_len, 0};
    seen_by_all_ = {0, request_.shape.kv_len};
  }
  // Adds a row; head and query are indices within the call.
  void add(std::int64_t head, std::int64_t query) {
    const std::int64_t place = request_.query(query);
    head = request_.head(head);
    heads_.push_back(static_cast<std::int32_t>(head));
    positions_.push_back(static_cast<std::int32_t>(place + request_.scores().query_offset[batch_]));
    const RowRange keys = request_.mask.range({batch_, head, place});
    seen_by_all_ = seen_by_all_ & keys;
    if (keys.begin >= keys.end) return;
    seen_by_any_ = {std::min(seen_by_any_.begin, keys.begin), std::max(seen_by_any_.end, keys.end)};
  }
  std::span<const TileRun> find() {
    tiles_.find(request_.mask,
                {static_cast<std::int32_t>(batch_), static_cast<std::int32_t>(heads_.size()),
                 heads_.data(), positions_.data()},
                seen_by_any_);
    return tiles_.runs();
  }
  // The keys that every row sees, before irregular parts of the mask.
  const RowRange& seen_by_all() const { return seen_by_all_; }

 private:
  const Request<Real>& request_;
  std::vector<TileRun> runs_;
  TileMap tiles_;
  std::int64_t batch_ = 0;
  std::vector<std::int32_t> heads_;
  std::vector<std::int32_t> positions_;
  RowRange seen_by_any_;
  RowRange seen_by_all_;
};

// The number of heads, or key heads, for which the tiles may differ: 1 if a mask is the same for
// all.
template <class Real>
std::int64_t different_heads(const Request<Real>& request, std::int64_t heads) {
  const bool is_per_head = !request.mask.is_structural() || request.mask.depends_on_head();
  return is_per_head ? heads : std::min<std::int64_t>(heads, 1);
}

}}}  // namespace heed::v0::engine
