#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <utility>
#include <vector>

#include "attention/calls.h"
#include "attention/engine/tile_map.h"
#include "attention/plan.h"
#include "heed/error.h"
#include "heed/plan.h"

namespace heed::inline v0 {

namespace {

constexpr const char* kRun = "AttentionPlan::run";

template <class T>
struct BasicOperands {
  TensorView<const T> query;
  TensorView<const T> key;
  TensorView<const T> value;
};

void check_equal(const char* name, std::int64_t found, std::int64_t planned) {
  if (found == planned) return;
  throw InvalidArgument(
      fmt::format("{}: {} is {}, but {} was planned", kRun, name, found, planned));
}

void check_planned(const AttentionShapes& found, const AttentionShapes& planned) {
  if (found.dtype != planned.dtype || found.type_of_keys() != planned.type_of_keys() ||
      found.type_of_values() != planned.type_of_values()) {
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

// Counts the tiles of panels, one after the other.
class PanelTiles {
 public:
  explicit PanelTiles(const Request<float>& request)
      : request_(request),
        runs_(static_cast<std::size_t>(std::max<std::int64_t>(
            1, engine::TileMap::capacity(!request.mask.is_structural(), request.shape.kv_len)))),
        tiles_(runs_.data()) {}

  // Of some rows of one key head, numbered as in a block.
  TileCounts count(const engine::RowBlock& block) {
    find(block);
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
  void find(const engine::RowBlock& block) {
    heads_.clear();
    positions_.clear();
    const std::int64_t group = request_.heads_per_kv_head;
    const BoundMask& mask = request_.mask;
    RowRange any{request_.shape.kv_len, 0};
    all_ = {0, request_.shape.kv_len};
    for (std::int64_t row = block.rows.begin; row < block.rows.end; ++row) {
      const std::int64_t head = block.kv_head * group + row % group;
      heads_.push_back(static_cast<std::int32_t>(head));
      positions_.push_back(static_cast<std::int32_t>(row / group + request_.shape.query_offset));
      const RowRange keys = mask.range({block.batch, head, row / group});
      all_ = all_ & keys;
      if (keys.begin == keys.end) continue;
      any = {std::min(any.begin, keys.begin), std::max(any.end, keys.end)};
    }
    tiles_.find(mask,
                {static_cast<std::int32_t>(block.batch), static_cast<std::int32_t>(heads_.size()),
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

  const Request<float>& request_;
  std::vector<engine::TileRun> runs_;
  engine::TileMap tiles_;
  std::vector<std::int32_t> heads_;
  std::vector<std::int32_t> positions_;
  RowRange all_;  // the keys that every row sees but for irregular parts of the mask
};

template <class T>
void run_planned(const Request<float>& request, const Plan<float>& plan,
                 const AttentionBuffers<T>& buffers, const BasicOperands<T>& in) {
  check_planned(check_shapes(kRun, in.query, in.key, in.value), request.shapes);
  const AttentionShapes& shapes = request.shapes;
  check_tensor<T>(kRun, "out", buffers.out,
                  {shapes.batch, shapes.num_heads, shapes.q_len, shapes.value_dim});
  if (!buffers.lse.empty()) {
    check_tensor<float>(kRun, "lse", buffers.lse, {shapes.batch, shapes.num_heads, shapes.q_len});
  }
  check_workspace(buffers.workspace,
                  plan.backend->workspace_bytes(request, plan.schedule, Pass::kForward));
  const ForwardCall<float> call{call_of(request, in.query, in.key, in.value), rows_of(buffers.out),
                                buffers.lse};
  plan.backend->forward({&call, 1}, plan.schedule, buffers.workspace);
}

template <class T>
Tensor<T> run_planned(const Request<float>& request, const Plan<float>& plan,
                      const BasicOperands<T>& in) {
  check_planned(check_shapes(kRun, in.query, in.key, in.value), request.shapes);
  const AttentionShapes& shapes = request.shapes;
  auto out =
      Tensor<T>::uninitialized({shapes.batch, shapes.num_heads, shapes.q_len, shapes.value_dim});
  run_planned<T>(request, plan, AttentionBuffers<T>{.out = out}, in);
  return out;
}

std::string kernel_text(const engine::Schedule<float>& schedule) {
  if (schedule.panel_rows == 1) {
    return fmt::format(
        "{}, lanes are keys, then columns: one row at a time, {} to a pass over the keys",
        schedule.table->name, schedule.panels_per_block);
  }
  return fmt::format("{}, lanes are rows: panels of {} rows, {} to a pass over the keys",
                     schedule.table->name, schedule.panel_rows, schedule.panels_per_block);
}

std::string staging_text(const AttentionShapes& shapes, const engine::Schedule<float>& schedule) {
  if (!schedule.stages_key && !schedule.stages_value) {
    return "none: keys and values are float32 and read where they lie";
  }
  const char* what = !schedule.stages_value ? "keys"
                     : schedule.stages_key  ? "keys and values"
                                            : "values";
  const DataType type = schedule.stages_key ? shapes.type_of_keys() : shapes.type_of_values();
  return fmt::format("{}, a tile at a time: {}", what,
                     type == DataType::kFloat32
                         ? std::string("their rows lie far apart")
                         : fmt::format("{} becomes float32", to_string(type)));
}

std::string types_text(const AttentionShapes& shapes) {
  std::string text(to_string(shapes.dtype));
  if (shapes.type_of_keys() != shapes.dtype || shapes.type_of_values() != shapes.dtype) {
    text += fmt::format(", keys {}, values {}", to_string(shapes.type_of_keys()),
                        to_string(shapes.type_of_values()));
  }
  return text;
}

std::string split_text(const engine::Schedule<float>& schedule) {
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

struct AttentionPlan::Decision {
  Request<float> request;
  Plan<float> plan;

  bool is_fused() const { return plan.schedule.table != nullptr; }
};

AttentionPlan::AttentionPlan(std::shared_ptr<const Decision> decision)
    : decision_(std::move(decision)) {}

const AttentionShapes& AttentionPlan::shapes() const noexcept { return decision_->request.shapes; }

std::string AttentionPlan::target() const { return decision_->plan.backend->name(); }

std::int64_t AttentionPlan::panel_rows() const noexcept {
  return decision_->plan.schedule.panel_rows;
}

std::int64_t AttentionPlan::panels_per_block() const noexcept {
  return decision_->plan.schedule.panels_per_block;
}

std::int64_t AttentionPlan::tile_keys() const noexcept {
  return decision_->is_fused() ? kernels::kTileKeys : 0;
}

bool AttentionPlan::stages_keys() const noexcept { return decision_->plan.schedule.stages_key; }

bool AttentionPlan::stages_values() const noexcept { return decision_->plan.schedule.stages_value; }

int AttentionPlan::num_threads() const noexcept { return decision_->plan.schedule.workers; }

bool AttentionPlan::splits_keys() const noexcept { return decision_->plan.schedule.key_chunks > 1; }

std::size_t AttentionPlan::workspace_bytes() const {
  const auto& [request, plan] = *decision_;
  return plan.backend->workspace_bytes(request, plan.schedule, Pass::kForward);
}

std::size_t AttentionPlan::backward_workspace_bytes() const {
  const Request<float>& request = decision_->request;
  const Plan<float> plan = make_plan(request, Pass::kBackward);
  return plan.backend->workspace_bytes(request, plan.schedule, Pass::kBackward);
}

std::size_t AttentionPlan::weights_workspace_bytes() const {
  const Request<float>& request = decision_->request;
  const Plan<float> plan = make_plan(request, Pass::kWeights);
  return plan.backend->workspace_bytes(request, plan.schedule, Pass::kWeights);
}

TileCounts AttentionPlan::tiles() const {
  TileCounts counts;
  if (!decision_->is_fused()) return counts;
  const Request<float>& request = decision_->request;
  PanelTiles panels(request);
  // The tiles of a structural mask are the same in every head.
  const bool is_per_head = !request.mask.is_structural() || request.mask.depends_on_head();
  const std::int64_t counted = is_per_head ? request.num_kv_heads() : 1;
  const std::int64_t factor = is_per_head ? 1 : request.num_kv_heads();
  const std::int64_t rows = request.rows_per_kv_head();
  for (std::int64_t batch = 0; batch < request.shape.batch; ++batch) {
    for (std::int64_t kv_head = 0; kv_head < counted; ++kv_head) {
      for (std::int64_t first = 0; first < rows; first += panel_rows()) {
        const TileCounts some =
            panels.count({batch, kv_head, {first, std::min(first + panel_rows(), rows)}});
        counts.total += some.total * factor;
        counts.skipped += some.skipped * factor;
        counts.mixed += some.mixed * factor;
      }
    }
  }
  return counts;
}

std::string AttentionPlan::to_string() const {
  const auto& [request, plan] = *decision_;
  const AttentionShapes& s = request.shapes;
  std::string text = fmt::format(
      "attention   query [{}, {}, {}, {}], key [{}, {}, {}, {}], value [{}, {}, {}, {}], {}\n",
      s.batch, s.num_heads, s.q_len, s.head_dim, s.batch, s.num_kv_heads, s.kv_len, s.head_dim,
      s.batch, s.num_kv_heads, s.kv_len, s.value_dim, types_text(s));
  text += fmt::format("mask        {}\n", request.mask.description());
  text += fmt::format("scores      {}\n", request.terms.description());
  if (!decision_->is_fused()) {
    return text + fmt::format("kernel      reference, plain loops: {}\n", plan.reason);
  }
  const engine::Schedule<float>& schedule = plan.schedule;
  text += fmt::format("kernel      {}\n", kernel_text(schedule));
  text += fmt::format("keys        tiles of {}, a new start every {}\n", kernels::kTileKeys,
                      kernels::kChunkKeys);
  text += fmt::format("tiles       {}\n", tiles_text(tiles()));
  text += fmt::format("staging     {}\n", staging_text(s, schedule));
  text += fmt::format("threads     {}, dividing {}\n", schedule.workers, split_text(schedule));
  text += fmt::format("workspace   {} bytes; backward {}, weights {}\n", workspace_bytes(),
                      backward_workspace_bytes(), weights_workspace_bytes());
  return text;
}

Tensor<float> AttentionPlan::run(FloatView query, FloatView key, FloatView value) const {
  return run_planned<float>(decision_->request, decision_->plan, {query, key, value});
}

Tensor<Float16> AttentionPlan::run(Float16View query, Float16View key, Float16View value) const {
  return run_planned<Float16>(decision_->request, decision_->plan, {query, key, value});
}

Tensor<BFloat16> AttentionPlan::run(BFloat16View query, BFloat16View key,
                                    BFloat16View value) const {
  return run_planned<BFloat16>(decision_->request, decision_->plan, {query, key, value});
}

void AttentionPlan::run_into(const AttentionBuffers<float>& buffers, FloatView query, FloatView key,
                             FloatView value) const {
  run_planned<float>(decision_->request, decision_->plan, buffers, {query, key, value});
}

void AttentionPlan::run_into(const AttentionBuffers<Float16>& buffers, Float16View query,
                             Float16View key, Float16View value) const {
  run_planned<Float16>(decision_->request, decision_->plan, buffers, {query, key, value});
}

void AttentionPlan::run_into(const AttentionBuffers<BFloat16>& buffers, BFloat16View query,
                             BFloat16View key, BFloat16View value) const {
  run_planned<BFloat16>(decision_->request, decision_->plan, buffers, {query, key, value});
}

AttentionPlan plan(const AttentionShapes& shapes, const AttentionOptions& options) {
  if (shapes.dtype == DataType::kFloat64) {
    throw InvalidArgument(
        "plan: dtype is float64, which needs no plan; expected float32, float16 or bfloat16");
  }
  Request<float> request = check_request("plan", shapes, options);
  Plan<float> plan = make_plan(request, Pass::kForward);
  return AttentionPlan(std::make_shared<AttentionPlan::Decision>(
      AttentionPlan::Decision{std::move(request), std::move(plan)}));
}

std::ostream& operator<<(std::ostream& stream, const AttentionPlan& plan) {
  return stream << plan.to_string();
}

}  // namespace heed::inline v0
