#include "attention/plan/plan_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "attention/engine/row_block.h"
#include "attention/engine/row_tiles.h"
#include "attention/masks/query_offsets.h"

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

namespace {

template <class Real>
std::string kernel_text(const engine::Schedule<Real>& schedule) {
  if (schedule.has_few_rows) {
    return fmt::format("{}, lanes are keys, then columns: {} row{} to a pass over the keys",
                       schedule.table->name, schedule.panel_rows,
                       schedule.panel_rows == 1 ? "" : "s");
  }
  const std::string orders =
      schedule.has_two_orders()
          ? fmt::format(", of neighbours or of queries {} apart", schedule.tile_step)
          : "";
  return fmt::format("{}, lanes are rows: panels of {} rows, {} to a pass over the keys{}",
                     schedule.table->name, schedule.panel_rows, schedule.panels_per_block, orders);
}

template <class Real>
std::string products_text(const engine::Schedule<Real>& schedule) {
  if (schedule.table->multiplies_tiles()) return "of bfloat16 in tiles, sums in float32";
  if (schedule.table->multiplies_pairs()) return "of bfloat16 in pairs, sums in float32";
  return fmt::format("of {}", to_string(data_type_of<Real>()));
}

template <class Real>
std::string staging_text(const AttentionShapes& shapes, const engine::Schedule<Real>& schedule) {
  const DataType computed = data_type_of<Real>();
  if (schedule.has_few_rows) return "none: keys and values are read as they are stored";
  if (schedule.stages_pairs) {
    const bool copies = schedule.stages_key || schedule.stages_value;
    return fmt::format("pairs of neighbouring values, a tile at a time{}",
                       copies ? "; rows that lie far apart or divide pairs are copied" : "");
  }
  if (!schedule.stages_key && !schedule.stages_value) {
    return fmt::format("none: keys and values are {} and read where they lie", to_string(computed));
  }
  const char* what = !schedule.stages_value ? "keys"
                     : schedule.stages_key  ? "keys and values"
                                            : "values";
  const DataType type = schedule.stages_key ? shapes.type_of_keys() : shapes.type_of_values();
  return fmt::format("{}, a tile at a time: {}", what,
                     type == computed
                         ? std::string("their rows lie far apart")
                         : fmt::format("{} becomes {}", to_string(type), to_string(computed)));
}

std::string types_text(const AttentionShapes& shapes) {
  std::string text(to_string(shapes.dtype));
  if (shapes.type_of_keys() != shapes.dtype || shapes.type_of_values() != shapes.dtype) {
    text += fmt::format(", keys {}, values {}", to_string(shapes.type_of_keys()),
                        to_string(shapes.type_of_values()));
  }
  return text;
}

std::string tiles_text(const TileCounts& tiles) {
  if (tiles.total == 0) return "none";
  return fmt::format("{} of {} skipped ({:.1f} %), {} partly masked", tiles.skipped, tiles.total,
                     100.0 * static_cast<double>(tiles.skipped) / static_cast<double>(tiles.total),
                     tiles.mixed);
}

std::string positions_text(const QueryOffset& offset) {
  if (is_zero(offset)) return "";
  return fmt::format("positions   query 0 stands at {}\n", to_string(offset));
}

template <class Real>
std::string division_text(const engine::Schedule<Real>& schedule) {
  if (schedule.key_chunks == 1) return "the query's rows";
  return fmt::format("the keys, {} at a time: there are too few rows", kernels::kChunkKeys);
}

}  // namespace

template <class Real>
std::string request_text(const Request<Real>& request) {
  const AttentionShapes& s = request.shape;
  return fmt::format(
      "attention   query [{}, {}, {}, {}], key [{}, {}, {}, {}], value [{}, {}, {}, {}], {}\n"
      "{}"
      "mask        {}\n"
      "scores      {}\n",
      s.batch, s.num_heads, s.q_len, s.head_dim, s.batch, s.num_kv_heads, s.kv_len, s.head_dim,
      s.batch, s.num_kv_heads, s.kv_len, s.value_dim, types_text(s),
      positions_text(request.scores().query_offset), request.mask.description(),
      request.terms.description());
}

template <class Real>
std::string fused_text(const Request<Real>& request, const engine::Schedule<Real>& schedule) {
  std::string text = fmt::format("kernel      {}\n", kernel_text(schedule));
  text += fmt::format("products    {}\n", products_text(schedule));
  text += fmt::format("keys        tiles of {}, a new start every {}\n", kernels::kTileKeys,
                      kernels::kChunkKeys);
  text += fmt::format("tiles       {}\n", tiles_text(count_tiles(request, schedule)));
  text += fmt::format("staging     {}\n", staging_text(request.shape, schedule));
  text += fmt::format("threads     {}, dividing {}\n", schedule.workers, division_text(schedule));
  return text;
}

template std::string request_text(const Request<float>&);
template std::string request_text(const Request<double>&);
template std::string fused_text(const Request<float>&, const engine::Schedule<float>&);
template std::string fused_text(const Request<double>&, const engine::Schedule<double>&);

}}  // namespace heed::v0
