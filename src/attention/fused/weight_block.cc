#include "attention/fused/weight_block.h"

#include <algorithm>
#include <limits>

#include "heed/cancellation.h"

namespace heed::inline v0::fused {

using kernels::kTileKeys;

namespace {

constexpr std::int64_t kMaxSegments = 8;

// Queries that a segment has at least, if there are as many.
constexpr std::int64_t kSegmentQueries = 192;

}  // namespace

std::int64_t queries_per_segment(std::int64_t q_len, std::int64_t panel_rows) {
  const std::int64_t queries = std::max(q_len / kMaxSegments, kSegmentQueries);
  return (queries + panel_rows - 1) / panel_rows * panel_rows;
}

Schedule make_weight_schedule(const kernels::KernelTable& table, const Terms<float>& terms,
                              const AttentionShapes& shapes, int threads) {
  Schedule schedule = make_schedule(table, terms, shapes, threads);
  schedule.stages_value = schedule.narrows_out = false;
  schedule.keeps_scores = true;
  schedule.key_chunks = 1;
  return schedule;
}

WeightBlock::WeightBlock(const Schedule& schedule, Workspace& workspace)
    : schedule_(schedule), reader_(schedule, workspace) {
  const auto panels = static_cast<std::size_t>(schedule.panels_per_block);
  rows_.reserve(panels);
  weights_.reserve(panels);
  for (std::size_t i = 0; i < panels; ++i) {
    rows_.emplace_back(schedule, workspace);
    weights_.emplace_back(schedule, workspace);
  }
  scratch_ = {
      {schedule, workspace},
      workspace.floats(std::min<std::int64_t>(kTileKeys, schedule.kv_len) * schedule.panel_rows)};
  if (schedule.widens_query) {
    staged_query_ = workspace.floats(schedule.panel_rows * schedule.head_dim);
  }
}

void WeightBlock::start(const Job& job, std::int64_t batch, std::span<const RowIndex> rows) {
  job_ = &job;
  reader_.start(job, batch, job.terms->kv_head(rows.front().head));
  const auto most = static_cast<std::size_t>(schedule_.panel_rows);
  num_panels_ = 0;
  for (std::size_t first = 0; first < rows.size(); first += most, ++num_panels_) {
    const auto some = rows.subspan(first, std::min(most, rows.size() - first));
    rows_[num_panels_].start(job, batch, some, staged_query_);
    weights_[num_panels_].start(rows_[num_panels_], *job.terms);
  }
  for_each_tile([&](const kernels::Tile& tile) {
    for (std::size_t i = 0; i < num_panels_; ++i) {
      if (rows_[i].sees(tile)) weights_[i].add(tile, scratch_);
    }
  });
  for (std::size_t i = 0; i < num_panels_; ++i) weights_[i].finish();
}

void WeightBlock::visit(FunctionRef<void(std::size_t panel, const kernels::WeightTile&)> use) {
  for_each_tile([&](const kernels::Tile& tile) {
    for (std::size_t i = 0; i < num_panels_; ++i) {
      if (rows_[i].sees(tile)) use(i, weights_[i].weigh(tile, scratch_));
    }
  });
}

template <class Use>
void WeightBlock::for_each_tile(Use use) {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;
  for (std::size_t i = 0; i < num_panels_; ++i) {
    begin = std::min<std::int64_t>(begin, rows_[i].panel().any_begin);
    end = std::max<std::int64_t>(end, rows_[i].panel().any_end);
  }
  const std::int64_t kv_len = job_->terms->shape.kv_len;
  for (std::int64_t key = begin / kTileKeys * kTileKeys; key < end; key += kTileKeys) {
    check_cancelled();
    const std::int64_t num_keys = std::min<std::int64_t>(kTileKeys, kv_len - key);
    const kernels::Tile place{.first_key = static_cast<std::int32_t>(key),
                              .num_keys = static_cast<std::int32_t>(num_keys)};
    const std::span<const PanelRows> panels(rows_.data(), num_panels_);
    const auto sees = [&](const PanelRows& rows) { return rows.sees(place); };
    if (std::any_of(panels.begin(), panels.end(), sees)) use(reader_.read({key, key + num_keys}));
  }
}

}  // namespace heed::inline v0::fused
