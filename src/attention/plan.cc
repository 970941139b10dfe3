#include "heed/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <utility>

#include "attention/call.h"
#include "heed/error.h"

namespace heed::inline v0 {

namespace {

constexpr const char* kRun = "AttentionPlan::run";

void check_equal(const char* name, std::int64_t found, std::int64_t planned) {
  if (found == planned) return;
  throw InvalidArgument(
      fmt::format("{}: {} is {}, but {} was planned", kRun, name, found, planned));
}

void check_planned(const AttentionShapes& found, const AttentionShapes& planned) {
  if (found.dtype != planned.dtype) {
    throw InvalidArgument(fmt::format("{}: the tensors are {}, but {} was planned", kRun,
                                      to_string(found.dtype), to_string(planned.dtype)));
  }
  check_equal("batch", found.batch, planned.batch);
  check_equal("num_heads", found.num_heads, planned.num_heads);
  check_equal("num_kv_heads", found.num_kv_heads, planned.num_kv_heads);
  check_equal("q_len", found.q_len, planned.q_len);
  check_equal("kv_len", found.kv_len, planned.kv_len);
  check_equal("head_dim", found.head_dim, planned.head_dim);
  check_equal("value_dim", found.value_dim, planned.value_dim);
}

void check_workspace(std::span<std::byte> workspace, std::size_t needed) {
  if (workspace.empty() || workspace.size() >= needed) return;
  throw InvalidArgument(fmt::format("{}: workspace has {} bytes, expected at least {}", kRun,
                                    workspace.size(), needed));
}

// Tiles with a key before `key`.
std::int64_t tiles_before(std::int64_t key) {
  return (key + kernels::kTileKeys - 1) / kernels::kTileKeys;
}

// Tiles of one panel that it skips and that it computes with a mask.
TileCounts tiles_of_rows(const BoundMask& mask, std::int64_t batch, RowRange queries) {
  RowRange any{mask.shape().kv_len, 0};
  RowRange all{0, mask.shape().kv_len};
  for (std::int64_t q = queries.begin; q < queries.end; ++q) {
    const RowRange keys = mask.range(batch, q);
    all = all & keys;
    if (keys.begin == keys.end) continue;
    any = {std::min(any.begin, keys.begin), std::max(any.end, keys.end)};
  }
  const std::int64_t total = tiles_before(mask.shape().kv_len);
  const std::int64_t touched =
      any.begin < any.end ? tiles_before(any.end) - any.begin / kernels::kTileKeys : 0;
  // The last tile may be shorter.
  const std::int64_t last_whole =
      all.end == mask.shape().kv_len ? total : all.end / kernels::kTileKeys;
  const std::int64_t whole =
      mask.is_structural() ? std::max<std::int64_t>(last_whole - tiles_before(all.begin), 0) : 0;
  return {.total = total, .skipped = total - touched, .mixed = touched - whole};
}

template <class T>
void run_call(const Call& call, const AttentionBuffers<T>& buffers, TensorView<const T> query,
              TensorView<const T> key, TensorView<const T> value) {
  check_planned(check_shapes(kRun, query, key, value), call.shapes);
  const AttentionShapes& shapes = call.shapes;
  check_tensor<T>(kRun, "out", buffers.out,
                  {shapes.batch, shapes.num_heads, shapes.q_len, shapes.value_dim});
  if (!buffers.lse.empty()) {
    check_tensor<float>(kRun, "lse", buffers.lse, {shapes.batch, shapes.num_heads, shapes.q_len});
  }
  if (call.is_fused()) check_workspace(buffers.workspace, call.schedule.workspace_bytes());
  execute<T>(call, query, key, value, buffers);
}

template <class T>
Tensor<T> run_call(const Call& call, TensorView<const T> query, TensorView<const T> key,
                   TensorView<const T> value) {
  check_planned(check_shapes(kRun, query, key, value), call.shapes);
  const AttentionShapes& shapes = call.shapes;
  auto out =
      Tensor<T>::uninitialized({shapes.batch, shapes.num_heads, shapes.q_len, shapes.value_dim});
  execute<T>(call, query, key, value, {.out = out});
  return out;
}

std::string kernel_text(const fused::Schedule& schedule) {
  if (schedule.panel_rows == 1) {
    return fmt::format(
        "{}, lanes are keys, then columns: one row at a time, {} to a pass over the keys",
        schedule.table->name, schedule.panels_per_block);
  }
  return fmt::format("{}, lanes are rows: panels of {} rows, {} to a pass over the keys",
                     schedule.table->name, schedule.panel_rows, schedule.panels_per_block);
}

std::string staging_text(const Call& call) {
  const fused::Schedule& schedule = call.schedule;
  if (!schedule.stages_key && !schedule.stages_value) {
    return "none: keys and values are float32 and read where they lie";
  }
  const char* what = !schedule.stages_value ? "keys"
                     : schedule.stages_key  ? "keys and values"
                                            : "values";
  return fmt::format("{}, a tile at a time: {}", what,
                     call.shapes.dtype == DataType::kFloat32
                         ? std::string("their rows lie far apart")
                         : fmt::format("{} becomes float32", to_string(call.shapes.dtype)));
}

std::string split_text(const fused::Schedule& schedule) {
  if (schedule.key_chunks == 1) return "the query's rows";
  return fmt::format("the keys, {} at a time: there are too few rows", kernels::kChunkKeys);
}

std::string tiles_text(const TileCounts& tiles) {
  if (tiles.total == 0) return "none";
  return fmt::format("{} of {} skipped ({:.1f} %), {} partly masked", tiles.skipped, tiles.total,
                     100.0 * static_cast<double>(tiles.skipped) / static_cast<double>(tiles.total),
                     tiles.mixed);
}

}  // namespace

struct AttentionPlan::Decision : Call {};

AttentionPlan::AttentionPlan(std::shared_ptr<const Decision> decision)
    : decision_(std::move(decision)) {}

const AttentionShapes& AttentionPlan::shapes() const noexcept { return decision_->shapes; }

std::string AttentionPlan::target() const {
  return decision_->is_fused() ? decision_->schedule.table->name : "reference";
}

std::int64_t AttentionPlan::panel_rows() const noexcept { return decision_->schedule.panel_rows; }

std::int64_t AttentionPlan::panels_per_block() const noexcept {
  return decision_->schedule.panels_per_block;
}

std::int64_t AttentionPlan::tile_keys() const noexcept {
  return decision_->is_fused() ? kernels::kTileKeys : 0;
}

bool AttentionPlan::stages_keys() const noexcept { return decision_->schedule.stages_key; }

bool AttentionPlan::stages_values() const noexcept { return decision_->schedule.stages_value; }

int AttentionPlan::num_threads() const noexcept { return decision_->schedule.workers; }

bool AttentionPlan::splits_keys() const noexcept { return decision_->schedule.key_chunks > 1; }

std::size_t AttentionPlan::workspace_bytes() const noexcept {
  return decision_->is_fused() ? decision_->schedule.workspace_bytes() : 0;
}

TileCounts AttentionPlan::tiles() const {
  TileCounts counts;
  if (!decision_->is_fused()) return counts;
  const Terms<float>& terms = decision_->terms;
  const std::int64_t group = terms.heads_per_kv_head;
  const std::int64_t rows = terms.shape.q_len * group;
  for (std::int64_t batch = 0; batch < terms.shape.batch; ++batch) {
    for (std::int64_t first = 0; first < rows; first += panel_rows()) {
      const std::int64_t last = std::min(first + panel_rows(), rows) - 1;
      const TileCounts some = tiles_of_rows(terms.mask, batch, {first / group, last / group + 1});
      counts.total += some.total * terms.num_kv_heads();
      counts.skipped += some.skipped * terms.num_kv_heads();
      counts.mixed += some.mixed * terms.num_kv_heads();
    }
  }
  return counts;
}

std::string AttentionPlan::to_string() const {
  const AttentionShapes& s = decision_->shapes;
  std::string text = fmt::format(
      "attention   query [{}, {}, {}, {}], key [{}, {}, {}, {}], value [{}, {}, {}, {}], {}\n",
      s.batch, s.num_heads, s.q_len, s.head_dim, s.batch, s.num_kv_heads, s.kv_len, s.head_dim,
      s.batch, s.num_kv_heads, s.kv_len, s.value_dim, heed::to_string(s.dtype));
  text += fmt::format("mask        {}\n", decision_->terms.mask.description());
  if (!decision_->is_fused()) {
    return text + "kernel      reference, plain loops: no vector kernel is in use here\n";
  }
  const fused::Schedule& schedule = decision_->schedule;
  text += fmt::format("kernel      {}\n", kernel_text(schedule));
  text += fmt::format("keys        tiles of {}, a new start every {}\n", kernels::kTileKeys,
                      kernels::kChunkKeys);
  text += fmt::format("tiles       {}\n", tiles_text(tiles()));
  text += fmt::format("staging     {}\n", staging_text(*decision_));
  text += fmt::format("threads     {}, dividing {}\n", schedule.workers, split_text(schedule));
  text += fmt::format("workspace   {} bytes\n", workspace_bytes());
  return text;
}

Tensor<float> AttentionPlan::run(FloatView query, FloatView key, FloatView value) const {
  return run_call(*decision_, query, key, value);
}

Tensor<Float16> AttentionPlan::run(Float16View query, Float16View key, Float16View value) const {
  return run_call(*decision_, query, key, value);
}

Tensor<BFloat16> AttentionPlan::run(BFloat16View query, BFloat16View key,
                                    BFloat16View value) const {
  return run_call(*decision_, query, key, value);
}

void AttentionPlan::run_into(const AttentionBuffers<float>& buffers, FloatView query, FloatView key,
                             FloatView value) const {
  run_call(*decision_, buffers, query, key, value);
}

void AttentionPlan::run_into(const AttentionBuffers<Float16>& buffers, Float16View query,
                             Float16View key, Float16View value) const {
  run_call(*decision_, buffers, query, key, value);
}

void AttentionPlan::run_into(const AttentionBuffers<BFloat16>& buffers, BFloat16View query,
                             BFloat16View key, BFloat16View value) const {
  run_call(*decision_, buffers, query, key, value);
}

AttentionPlan plan(const AttentionShapes& shapes, const AttentionOptions& options) {
  if (shapes.dtype == DataType::kFloat64) {
    throw InvalidArgument(
        "plan: dtype is float64, which the reference computes; expected float32, float16 or "
        "bfloat16");
  }
  return AttentionPlan(std::make_shared<AttentionPlan::Decision>(
      AttentionPlan::Decision{decide("plan", shapes, options)}));
}

std::ostream& operator<<(std::ostream& stream, const AttentionPlan& plan) {
  return stream << plan.to_string();
}

}  // namespace heed::inline v0
