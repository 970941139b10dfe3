#include "attention/plan/tile_counts.h"

#include <algorithm>

#include "attention/engine/row_block.h"
#include "attention/engine/row_tiles.h"

namespace heed { inline namespace v0 {

namespace {

// The number of tiles that have a key before `key`.
std::int64_t tiles_before(std::int64_t key) {
  return (key + kernels::kTileKeys - 1) / kernels::kTileKeys;
}

// Counts the tiles of panels, one panel at a time.
template <class Real>
class PanelTiles {
 public:
  explicit PanelTiles(const Request<Real>& request) : request_(request), rows_(request) {}

  TileCounts count(const engine::RowBlock& panel) {
    const std::int64_t group = request_.heads_per_kv_head;
    rows_.clear(panel.batch);
    for (std::int64_t row = panel.rows.begin; row < panel.rows.end; ++row) {
      rows_.add(panel.kv_head * group + row % group,
                panel.first_query + row / group * panel.query_step);
    }
    const std::int64_t total = tiles_before(request_.shape.kv_len);
    TileCounts counts{.total = total, .skipped = total};
    for (const engine::TileRun& run : rows_.find()) {
      const std::int64_t begin = run.begin / kernels::kTileKeys;
      const std::int64_t end = tiles_before(run.end);
      counts.skipped -= end - begin;
      counts.mixed += end - begin - (run.has_mask ? 0 : whole_tiles(begin, end));
    }
    return counts;
  }

 private:
  // The number of tiles from `begin` to `end` in which every row sees every key.
  std::int64_t whole_tiles(std::int64_t begin, std::int64_t end) const {
    // The last tile may be shorter.
    const std::int64_t kv_len = request_.shape.kv_len;
    const RowRange& all = rows_.seen_by_all();
    const std::int64_t last =
        all.end == kv_len ? tiles_before(kv_len) : all.end / kernels::kTileKeys;
    return std::max<std::int64_t>(std::min(end, last) - std::max(begin, tiles_before(all.begin)),
                                  0);
  }

  const Request<Real>& request_;
  engine::RowTiles<Real> rows_;
};

}  // namespace

template <class Real>
TileCounts count_tiles(const Request<Real>& request, const engine::Schedule<Real>& schedule) {
  TileCounts counts{.rows = schedule.panel_rows,
                    .keys = kernels::kTileKeys,
                    .rows_together = schedule.panel_rows * std::int64_t{schedule.panels_per_block}};
  PanelTiles<Real> panels(request);
  const std::int64_t counted = engine::different_heads(request, request.num_kv_heads());
  const std::int64_t factor = counted == 0 ? 0 : request.num_kv_heads() / counted;
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

}}  // namespace heed::v0
