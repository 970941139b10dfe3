#include "attention/engine/schedule.h"

#include "attention/engine/seen_tile.h"
#include "attention/keys/tensor_keys.h"

namespace heed { inline namespace v0 { namespace engine {

namespace {

// The number of blocks for each thread, so that none waits long for another at the end.
constexpr std::int64_t kBlocksPerThread = 4;

// The number of panels of a block, which use a tile while it is in the cache. If a block copies its
// tiles or turns them into pairs it has up to kMostPanelsPerBlock, as long as the panels of all
// blocks together take at most about kBytesOfPanels, so that the memory of a call is reused by the
// next. If tiles are read in place, the memory of more panels would take more from the cache than
// they save.
constexpr std::int32_t kPanelsPerBlock = 8;
constexpr std::int32_t kMostPanelsPerBlock = 32;
constexpr std::int64_t kBytesOfPanels = 2 * 1024 * 1024;

// The number of panels of a block of the backward pass, which take more memory. If tiles are read
// in place, the panels of a block take a part of a second-level cache.
constexpr std::int32_t kPanelsPerBackwardBlock = 4;
constexpr std::int32_t kMostPanelsPerBackwardBlock = 12;
constexpr std::int64_t kBackwardBlockBytes = 512 * 1024;

// The work for which it pays to wake another thread, some ten microseconds: in multiply-adds, and
// for decode in numbers of keys and values, as reading those takes longer than computing with them.
constexpr double kWorkPerThread = 1e6;
constexpr double kNumbersPerThread = 125e3;

// The largest number of parts into which queries are divided where something is summed over them,
// and the smallest number of queries of a part.
constexpr std::int64_t kMaxParts = 8;
constexpr std::int64_t kPartQueries = 192;

// The largest number of rows of a key head that form a decode panel; others are computed in panels
// of up to kPanelVectors. Panels of whole vectors need a copy of each tile of pages, which pays for
// more than two vectors of rows; quantised pages are never copied.
template <class Real>
std::int64_t most_few_rows(const Request<Real>& request, std::int32_t lanes) {
  if (kernels::is_quantised(request.key_storage) || kernels::is_quantised(request.value_storage)) {
    return request.rows_per_kv_head();
  }
  const std::int32_t of_pages = std::max(kernels::kMostFewRows, 2 * lanes);
  return std::min(request.has_key_source ? of_pages : kernels::kMostFewRows,
                  kernels::kPanelVectors * lanes);
}

// The number of threads, up to `threads`, for which there is work enough; at least one.
template <class Real>
int useful_threads(const Request<Real>& request, bool has_few_rows, int threads) {
  const double numbers = static_cast<double>(request.shape.batch * request.num_kv_heads()) *
                         static_cast<double>(request.num_keys()) *
                         static_cast<double>(request.head_dim() + request.value_dim());
  const double work =
      has_few_rows ? numbers / kNumbersPerThread
                   : numbers * static_cast<double>(request.rows_per_kv_head()) / kWorkPerThread;
  return std::clamp(static_cast<int>(std::min<double>(work, threads)), 1, std::max(threads, 1));
}

// True if the tensors of a call take more memory than nearby caches hold. Fetching their rows pays
// then; where they are in a cache it costs a few per cent of the time of a short call.
template <class Real>
bool has_large_tensors(const Request<Real>& request, Pass pass) {
  constexpr double kLargeBytes = 8 << 20;
  const std::int64_t heads = request.shape.batch * request.num_kv_heads();
  const double rows = static_cast<double>(heads) *
                      static_cast<double>(request.rows_per_kv_head() + request.num_keys());
  const double bytes = rows * static_cast<double>(request.head_dim() + request.value_dim()) *
                       static_cast<double>(size_of(request.shape.dtype));
  // Every tensor has a gradient of its size.
  return (pass == Pass::kBackward ? 2 * bytes : bytes) > kLargeBytes;
}

// True if the weights of a call take no more memory than query, key, value and out, so that kept
// weights are linear in the lengths, and at most kMostBytes: more memory takes as long as the
// computation that it saves, and above 32 MiB each call gets new pages.
template <class Real>
bool has_small_weights(const Request<Real>& request) {
  constexpr double kMostBytes = 16 << 20;
  const auto queries = static_cast<double>(request.num_queries());
  const auto keys = static_cast<double>(request.num_keys());
  const auto dims = static_cast<double>(request.head_dim() + request.value_dim());
  const auto heads = static_cast<double>(request.shape.batch * request.num_heads());
  return keys > 0 && queries * keys <= (queries + keys) * dims &&
         heads * queries * keys * sizeof(Real) <= kMostBytes;
}

// True if the forward pass has weights that the backward pass can use: those of plain kernels, in
// panels and tiles that both passes have, with nothing applied to them, and of one chunk of keys,
// which threads do not share. The answer therefore does not depend on the number of threads, nor on
// the instruction set.
template <class Real>
bool keeps_weights(const Schedule<Real>& schedule, const Request<Real>& request, Pass pass) {
  return pass != Pass::kWeights && request.rows_per_kv_head() > kernels::kMostFewRows &&
         !schedule.stages_pairs && !changes_scores(request) && request.dropout.keeps_everything() &&
         !request.has_key_source && !request.part && request.query_step() == 1 &&
         request.mask.query_block() <= 1 && request.num_keys() <= kernels::kChunkKeys &&
         has_small_weights(request);
}

// True if AMX tiles can multiply the request. This depends on its dimensions and not on its
// lengths, so that a token has the same bits alone as among others.
template <class Real>
bool takes_tiles(const Request<Real>& request) {
  constexpr std::int64_t kDims = 32;
  const auto fits = [](std::int64_t dim) {
    return dim > 0 && dim <= kernels::kMostTileDims && dim % kDims == 0;
  };
  return fits(request.head_dim()) && fits(request.value_dim());
}

// True if products are of bfloat16 in pairs. Weights alone are not computed so, as they are rounded
// only when they are multiplied. Learned vectors read the query as numbers.
template <class Real>
bool takes_pairs(const kernels::BasicKernelTable<Real>& table, const Request<Real>& request,
                 Pass pass) {
  const AttentionShapes& shapes = request.shape;
  return table.in_pairs != nullptr && request.precision == Precision::kFast &&
         pass != Pass::kWeights && shapes.dtype == DataType::kBFloat16 &&
         shapes.type_of_keys() == DataType::kBFloat16 &&
         shapes.type_of_values() == DataType::kBFloat16 && !request.terms.read_query() &&
         !request.terms.add_to_values() &&
         (!table.in_pairs->multiplies_tiles() || takes_tiles(request));
}

// The members of a schedule that do not depend on how the problem is divided.
template <class Real>
Schedule<Real> describe(const kernels::BasicKernelTable<Real>& table, const Request<Real>& request,
                        Pass pass) {
  const bool is_other_type = request.shape.dtype != data_type_of<Real>();
  Schedule<Real> schedule;
  schedule.table = takes_pairs(table, request, pass) ? table.in_pairs : &table;
  schedule.stages_pairs = schedule.table->multiplies_pairs();
  const StagedTensors staged =
      schedule.stages_pairs ? staged_pairs(request.shape) : staged_tensors<Real>(request.shape);
  schedule.head_dim = request.head_dim();
  schedule.value_dim = request.value_dim();
  schedule.kv_len = request.shape.kv_len;
  schedule.has_irregular_mask = !request.mask.is_structural();
  schedule.has_dropout = !request.dropout.keeps_everything();
  schedule.has_derivatives = request.terms.have_derivative();
  schedule.sums_scores = pass == Pass::kBackward && request.terms.are_learned();
  schedule.runs_kernels_alone = !changes_scores(request) && pass != Pass::kWeights;
  schedule.has_plain_scores =
      pass == Pass::kForward && schedule.runs_kernels_alone && request.dropout.keeps_everything();
  schedule.stages_key = staged.key || request.has_key_source;
  schedule.stages_value = (staged.value || request.has_key_source) && pass != Pass::kWeights;
  schedule.key_storage = request.key_storage;
  schedule.value_storage = request.value_storage;
  schedule.converts_query = is_other_type;
  schedule.converts_out = is_other_type && pass != Pass::kWeights;
  schedule.keeps_scores = pass == Pass::kWeights;
  return schedule;
}

// True if keys that no row sees may be left out of products.
template <class Real>
bool may_leave_out_keys(const Schedule<Real>& schedule, const Request<Real>& request) {
  return request.terms.empty() && !schedule.has_dropout && !request.mask.adds() &&
         !schedule.table->multiplies_tiles();
}

// The step between the keys that a row sees, taken from the last query and the first tile that it
// visits. It only affects speed.
template <class Real>
std::int64_t step_of_keys(const Request<Real>& request) {
  const BoundMask& mask = request.mask;
  const std::int64_t q = request.num_queries() - 1;
  if (mask.is_structural() || mask.calls_function() || q < 0 || request.num_heads() == 0 ||
      request.shape.batch == 0) {
    return 1;
  }
  const AttentionRow row{0, request.head(0), request.query(q)};
  const auto head = static_cast<std::int32_t>(row.head);
  const auto position = static_cast<std::int32_t>(row.query + request.scores().query_offset[0]);
  const detail::RowGroup group{0, 1, &head, &position};
  const RowRange range = mask.range(row);
  const std::int64_t key =
      mask.next_key(group, range.begin / kernels::kTileKeys * kernels::kTileKeys);
  if (key >= range.end) return 1;
  detail::KeyBits seen;
  mask.see(group, {key, std::min(key + kernels::kTileKeys, request.shape.kv_len)}, &seen);
  return seen.is_empty() ? 1 : steps_of(seen).step;
}

// AMX multiplies a panel by a tile of keys so fast that loading the panel's query and sums for each
// tile takes a noticeable part of the time, so that a panel computes several tiles in a row. Other
// instruction sets do so for tiles of which rows see few keys in steps, until these are as many as
// a tile has. Not where tiles are copied, as there is memory for one only; nor, with AMX, where
// user's functions run, between which calls can be cancelled.
template <class Real>
std::int32_t tiles_together(const Schedule<Real>& schedule, const Request<Real>& request,
                            Pass pass) {
  if (pass == Pass::kWeights || schedule.has_few_rows || schedule.stages_key ||
      schedule.stages_value) {
    return 1;
  }
  std::int64_t wanted = 1;
  if (schedule.table->multiplies_tiles()) {
    wanted = pass == Pass::kForward && schedule.runs_kernels_alone ? kMostTilesTogether : 1;
  } else if (may_leave_out_keys(schedule, request) && !schedule.stages_pairs) {
    wanted = step_of_keys(request);
  }
  const std::int64_t tiles = (schedule.kv_len - 1) / kernels::kTileKeys + 1;
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(std::min(tiles, wanted), 1, kMostTilesTogether));
}

// True if rows may be gathered: moving a row costs little only compared with its products with many
// keys.
template <class Real>
bool gathers_rows(const Schedule<Real>& schedule, const Request<Real>& request, Pass pass) {
  return pass == Pass::kForward && !schedule.has_few_rows && schedule.panels_per_block > 1 &&
         !schedule.has_two_orders() && schedule.tiles_together == 1 &&
         schedule.has_irregular_mask && may_leave_out_keys(schedule, request);
}

// The number of rows in whole vectors, up to the largest panel.
std::int32_t rows_of_panel(std::int64_t rows, std::int32_t lanes) {
  const std::int64_t vectors =
      std::clamp<std::int64_t>((rows + lanes - 1) / lanes, 1, kernels::kPanelVectors);
  return static_cast<std::int32_t>(vectors) * lanes;
}

// The largest number of rows of a panel, in whole vectors, that divides blocks of rows with similar
// keys; `most` if none does.
std::int32_t rows_of_blocks(std::int64_t block_rows, std::int32_t most, std::int32_t lanes) {
  for (std::int32_t rows = most; rows > 0; rows -= lanes) {
    if (block_rows % rows == 0) return rows;
  }
  return most;
}

// The largest number of panels of a forward block.
template <class Real>
std::int64_t most_panels(const Schedule<Real>& schedule, Pass pass) {
  if (pass != Pass::kForward || !schedule.makes_tiles()) return kPanelsPerBlock;
  // A panel has a query and two states.
  const std::int64_t panel_bytes = static_cast<std::int64_t>(sizeof(Real)) *
                                   (schedule.packed_query_size() + 2 * schedule.out_size());
  return std::clamp<std::int64_t>(
      kBytesOfPanels / std::max<std::int64_t>(schedule.workers * panel_bytes, 1), kPanelsPerBlock,
      kMostPanelsPerBlock);
}

// The largest number of panels of a backward block. Larger ones were not measured with AMX tiles.
template <class Real>
std::int64_t most_backward_panels(const Schedule<Real>& schedule) {
  const std::int64_t panel_bytes = static_cast<std::int64_t>(sizeof(Real)) * schedule.panel_rows *
                                   (3 * schedule.head_dim + 2 * schedule.value_dim + 1);
  const std::int64_t in_place =
      std::clamp<std::int64_t>(kBackwardBlockBytes / panel_bytes, 1, kPanelsPerBackwardBlock);
  if (!schedule.makes_tiles() || schedule.table->multiplies_tiles()) return in_place;
  return std::clamp<std::int64_t>(kBytesOfPanels / (schedule.workers * panel_bytes), in_place,
                                  kMostPanelsPerBackwardBlock);
}

// The panels of a block whose terms sum over its rows and keys: as many rows with every instruction
// set, because sums over rows and tiles of keys would have another order otherwise.
template <class Real>
std::int64_t panels_summed_together(const Schedule<Real>& schedule) {
  return std::max<std::int64_t>(kernels::kWidestPanelRows<Real> / schedule.panel_rows, 1);
}

// The number of panels of a block, of the `panels` of a key head.
template <class Real>
std::int64_t panels_of_block(const Schedule<Real>& schedule, Pass pass, std::int64_t panels,
                             std::int64_t all_panels) {
  // With several threads, forward blocks are small. In the backward pass a thread has a head to
  // itself.
  if (pass == Pass::kBackward) {
    return std::min(panels, schedule.sums_scores ? panels_summed_together(schedule)
                                                 : most_backward_panels(schedule));
  }
  const std::int64_t most = std::min(panels, most_panels(schedule, pass));
  if (schedule.workers == 1) return most;
  const std::int64_t fair = all_panels / (schedule.workers * kBlocksPerThread);
  return std::clamp<std::int64_t>(fair, 1, most);
}

// The largest number of rows of a block that has them in two orders.
constexpr std::int64_t kMostRowsInTwoOrders = 2048;

// The step between rows that some tiles have in one panel; 1 if no tile does. In the backward pass
// no sum may depend on which rows are neighbours.
template <class Real>
std::int64_t step_of_tiles(const Schedule<Real>& schedule, const Request<Real>& request,
                           Pass pass) {
  const bool sums_in_any_order =
      pass == Pass::kForward || (schedule.table->keys_together == 1 && !request.sinks);
  const std::int64_t step = request.mask.query_step_of_tiles();
  if (pass == Pass::kWeights || schedule.has_few_rows || request.query_step() > 1 ||
      step >= request.num_queries() || !sums_in_any_order ||
      !may_leave_out_keys(schedule, request)) {
    return 1;
  }
  return step * request.heads_per_kv_head <= kMostRowsInTwoOrders ? step : 1;
}

// Gives blocks their rows in two orders, with as many rows of each offset as panels and threads
// need.
template <class Real>
void take_two_orders(Schedule<Real>& schedule, const Request<Real>& request, std::int64_t step) {
  const std::int64_t group = request.heads_per_kv_head;
  const std::int64_t all_rows =
      request.shape.batch * request.num_kv_heads() * request.rows_per_kv_head();
  const std::int64_t fair =
      schedule.workers == 1 ? all_rows : all_rows / (schedule.workers * kBlocksPerThread);
  const std::int64_t most =
      std::clamp<std::int64_t>(std::min(fair, kMostRowsInTwoOrders) / step, 1, schedule.panel_rows);
  const std::int64_t rows = std::max<std::int64_t>(most / group, 1) * group;
  // Empty lanes cost as much as others.
  if (2 * rows < schedule.table->lanes) return;
  schedule.tile_step = step;
  schedule.rows_per_step = rows;
  schedule.panels_per_block =
      static_cast<std::int32_t>(step * ((rows - 1) / schedule.panel_rows + 1));
}

}  // namespace

template <class Real>
Schedule<Real> make_schedule(const kernels::BasicKernelTable<Real>& table,
                             const Request<Real>& request, Pass pass, int threads) {
  Schedule<Real> schedule = describe(table, request, pass);
  const std::int64_t rows = request.rows_per_kv_head();
  const bool has_few_rows = request.terms.empty() && request.dropout.keeps_everything() &&
                            rows <= most_few_rows(request, table.lanes) &&
                            !(schedule.stages_pairs && request.head_dim() % 2 != 0);
  schedule.has_few_rows = has_few_rows && pass == Pass::kForward;
  schedule.fetches_rows = pass != Pass::kWeights && !schedule.has_few_rows &&
                          !schedule.has_quantised_keys() && !schedule.has_quantised_values() &&
                          !schedule.table->multiplies_tiles() && has_large_tensors(request, pass);
  schedule.groups_queries = pass == Pass::kForward && !schedule.has_few_rows;
  const std::int64_t step = schedule.query_step(request);
  const std::int64_t step_rows = request.rows_in_steps(step);
  schedule.panel_rows = schedule.has_few_rows
                            ? static_cast<std::int32_t>(std::clamp<std::int64_t>(
                                  rows, 1, std::int64_t{kernels::kPanelVectors} * table.lanes))
                            : rows_of_panel(step_rows, table.lanes);
  if (schedule.groups_queries && request.mask.query_block() > 1) {
    schedule.panel_rows = rows_of_blocks(request.mask.query_block() * request.heads_per_kv_head,
                                         schedule.panel_rows, table.lanes);
  }
  const std::int64_t panels =
      std::max<std::int64_t>(1, step * ((step_rows - 1) / schedule.panel_rows + 1));
  const std::int64_t all_panels = panels * request.shape.batch * request.num_kv_heads();
  const int useful = useful_threads(request, schedule.has_few_rows, threads);
  const bool divides_keys =
      pass == Pass::kForward && all_panels < useful && request.num_keys() > kernels::kChunkKeys;
  if (divides_keys) schedule.key_chunks = (request.num_keys() - 1) / kernels::kChunkKeys + 1;
  schedule.keeps_weights = keeps_weights(schedule, request, pass);
  schedule.workers = static_cast<int>(
      std::min<std::int64_t>(useful, std::max<std::int64_t>(1, all_panels * schedule.key_chunks)));
  schedule.panels_per_block =
      divides_keys ? 1
                   : static_cast<std::int32_t>(panels_of_block(schedule, pass, panels, all_panels));
  const std::int64_t tile_step = divides_keys ? 1 : step_of_tiles(schedule, request, pass);
  if (tile_step > 1) take_two_orders(schedule, request, tile_step);
  schedule.tiles_together = tiles_together(schedule, request, pass);
  schedule.gathers_rows = gathers_rows(schedule, request, pass);
  return schedule;
}

template <class Real>
Schedule<Real> in_whole_vectors(const Schedule<Real>& schedule) {
  Schedule<Real> whole = schedule;
  whole.has_few_rows = false;
  whole.panel_rows = rows_of_panel(schedule.panel_rows, schedule.table->lanes);
  return whole;
}

template <class Real>
Schedule<Real> exact_schedule(const Schedule<Real>& schedule) {
  Schedule<Real> exact = in_whole_vectors(schedule);
  if (schedule.table->multiplies_pairs()) {
    exact.table = schedule.table->in_numbers;
    exact.stages_pairs = false;
    exact.stages_key = exact.stages_value = true;
  }
  exact.key_storage = exact.value_storage = KvStorage::kFloat32;
  exact.panels_per_block = 1;
  exact.tile_step = 1;
  exact.gathers_rows = false;
  exact.tiles_together = 1;
  exact.keeps_scores = true;
  exact.key_chunks = 1;
  return exact;
}

template <class Real>
std::int64_t queries_per_part(std::int64_t q_len) {
  constexpr std::int64_t kRows = kernels::kWidestPanelRows<Real>;
  return (std::max(q_len / kMaxParts, kPartQueries) + kRows - 1) / kRows * kRows;
}

template std::int64_t queries_per_part<float>(std::int64_t);
template std::int64_t queries_per_part<double>(std::int64_t);
template Schedule<float> make_schedule(const kernels::KernelTable&, const Request<float>&, Pass,
                                       int);
template Schedule<double> make_schedule(const kernels::BasicKernelTable<double>&,
                                        const Request<double>&, Pass, int);
template Schedule<float> in_whole_vectors(const Schedule<float>&);
template Schedule<double> in_whole_vectors(const Schedule<double>&);
template Schedule<float> exact_schedule(const Schedule<float>&);
template Schedule<double> exact_schedule(const Schedule<double>&);

}}}  // namespace heed::v0::engine
