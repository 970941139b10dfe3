#include "attention/plan/plan_text.h"

#include <fmt/format.h>

#include "attention/masks/query_offsets.h"
#include "attention/plan/tile_counts.h"

namespace heed { inline namespace v0 {

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
