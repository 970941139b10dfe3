#include "attention/tile_counts.h"

#include <algorithm>
#include <vector>

#include "attention/engine/job.h"
#include "attention/engine/tile_map.h"

namespace heed::inline v0 {

namespace {

// Tiles with a key before `key`.
std::int64_t tiles_before(std::int64_t key) {
  return (key + kernels::kTileKeys - 1) / kernels::kTileKeys;
}

// Counts the tiles of panels, one after the other.
template <class Real>
class PanelTiles {
 public:
  explicit PanelTiles(const Request<Real>& request)
      : request_(request),
        runs_(static_cast<std::size_t>(std::max<std::int64_t>(
            1, engine::TileMap::capacity(!request.mask.is_structural(), request.shape.kv_len)))),
        tiles_(runs_.data()) {}

  TileCounts count(const engine::RowBlock& panel) {
    find(panel);
    const std::int64_t total = tiles_before(request_.shape.kv_len);
    TileCounts counts{.total = total, .skipped = total, .mixed = 0};
    for (const engine::TileRun& run : tiles_.runs()) {
      const std::int64_t begin = run.begin / kernels::kTileKeys;
      const std::int64_t end = tiles_before(run.end);
      counts.skipped -= end - begin;
      counts.mixed += end - begin - (run.has_mask ? 0 : whole_tiles(begin, end));
    }
    return counts;
  }

 private:
  void find(const engine::RowBlock& panel) {
    heads_.clear();
    positions_.clear();
    const std::int64_t group = request_.heads_per_kv_head;
    const BoundMask& mask = request_.mask;
    RowRange any{request_.shape.kv_len, 0};
    all_ = {0, request_.shape.kv_len};
    for (std::int64_t row = panel.rows.begin; row < panel.rows.end; ++row) {
      const std::int64_t head = panel.kv_head * group + row % group;
      heads_.push_back(static_cast<std::int32_t>(head));
      const std::int64_t query = panel.first_query + row / group * panel.query_step;
      positions_.push_back(
          static_cast<std::int32_t>(query + request_.shape.query_offset[panel.batch]));
      const RowRange keys = mask.range({panel.batch, head, query});
      all_ = all_ & keys;
      if (keys.begin == keys.end) continue;
      any = {std::min(any.begin, keys.begin), std::max(any.end, keys.end)};
    }
    tiles_.find(mask,
                {static_cast<std::int32_t>(panel.batch), static_cast<std::int32_t>(heads_.size()),
                 heads_.data(), positions_.data()},
                any);
  }

  // How many of these tiles have no key that some row does not see.
  std::int64_t whole_tiles(std::int64_t begin, std::int64_t end) const {
    // The last tile may be shorter.
    const std::int64_t kv_len = request_.shape.kv_len;
    const std::int64_t last =
        all_.end == kv_len ? tiles_before(kv_len) : all_.end / kernels::kTileKeys;
    return std::max<std::int64_t>(std::min(end, last) - std::max(begin, tiles_before(all_.begin)),
                                  0);
  }

  const Request<Real>& request_;
  std::vector<engine::TileRun> runs_;
  engine::TileMap tiles_;
  std::vector<std::int32_t> heads_;
  std::vector<std::int32_t> positions_;
  RowRange all_;  // the keys that every row sees but for irregular parts of the mask
};

}  // namespace

template <class Real>
TileCounts count_tiles(const Request<Real>& request, const engine::Schedule<Real>& schedule) {
  TileCounts counts;
  PanelTiles<Real> panels(request);
  // The tiles of a structural mask are the same in every head.
  const bool is_per_head = !request.mask.is_structural() || request.mask.depends_on_head();
  const std::int64_t counted = is_per_head ? request.num_kv_heads() : 1;
  const std::int64_t factor = is_per_head ? 1 : request.num_kv_heads();
  const auto add = [&](const engine::RowBlock& head) {
    engine::RowBlock panel = head;
    for (std::int64_t first = 0; first < head.rows.end; first += schedule.panel_rows) {
      panel.rows = {first, std::min(first + schedule.panel_rows, head.rows.end)};
      const TileCounts some = panels.count(panel);
      counts.total += some.total * factor;
      counts.skipped += some.skipped * factor;
      counts.mixed += some.mixed * factor;
    }
  };
  const std::int64_t step = schedule.query_step(request);
  for (std::int64_t batch = 0; batch < request.shape.batch; ++batch) {
    for (std::int64_t kv_head = 0; kv_head < counted; ++kv_head) {
      for (std::int64_t first = 0; first < step; ++first) {
        add({batch, kv_head, {0, request.rows_in_steps(step, first)}, first, step});
      }
    }
  }
  return counts;
}

template TileCounts count_tiles(const Request<float>&, const engine::Schedule<float>&);
template TileCounts count_tiles(const Request<double>&, const engine::Schedule<double>&);

}  // namespace heed::inline v0
