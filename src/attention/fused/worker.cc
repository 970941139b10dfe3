#include "attention/fused/worker.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <type_traits>

#include "attention/fused/exact_rows.h"
#include "heed/cancellation.h"

namespace heed::inline v0::fused {

using kernels::kChunkKeys;
using kernels::kTileKeys;

Worker::Worker(const Schedule& schedule, Workspace workspace)
    : schedule_(schedule),
      reader_(schedule, workspace),
      panels_(workspace.take<PanelOutput>(schedule.panels_per_block)) {
  static_assert(std::is_trivially_destructible_v<PanelOutput>);
  for (std::int32_t i = 0; i < schedule.panels_per_block; ++i) {
    if (panels_ == nullptr) {
      PanelOutput(schedule, workspace);  // only to be measured
    } else {
      std::construct_at(panels_ + i, schedule, workspace);
    }
  }
  scratch_ = {{schedule, workspace}};
  if (schedule.widens_query || schedule.narrows_out) {
    scratch_.rows =
        workspace.floats(schedule.panel_rows * std::max(schedule.head_dim, schedule.value_dim));
  }
  bytes_ = workspace.bytes();
}

std::size_t Worker::bytes(const Schedule& schedule) {
  return Worker(schedule, Workspace(kMeasureOnly)).bytes_;
}

std::span<PanelOutput> Worker::start(const Block& block) {
  reader_.start(block.job, block.batch, block.kv_head);
  std::size_t count = 0;
  for (std::int64_t first = block.rows.begin; first < block.rows.end; ++count) {
    const std::int64_t last = std::min(first + schedule_.panel_rows, block.rows.end);
    panels_[count].start({block.job, block.batch, block.kv_head, {first, last}}, scratch_);
    first = last;
  }
  return {panels_, count};
}

void Worker::compute(const Block& block) {
  const std::span<PanelOutput> panels = start(block);
  run(block.job, panels);
  finish(block, panels);
}

void Worker::compute_chunk(const Block& block, std::int64_t chunk, SavedChunk saved) {
  const std::span<PanelOutput> panels = start(block);
  panels.front().compute_in(saved);
  const std::int64_t begin = chunk * kChunkKeys;
  run_chunk(block.job, panels,
            {begin, std::min(begin + kChunkKeys, block.job.terms->shape.kv_len)});
  saved.set_seen(panels.front().has_seen_chunk());
}

void Worker::finish(const Block& block, std::span<PanelOutput> panels) {
  for (PanelOutput& panel : panels) {
    // NaN stays: whoever met one has it now. If it was hidden, it met a weight of 0 and must go.
    if (!panel.is_finite()) {
      panel.restart_guarded();
      run(block.job, {&panel, 1});
    }
    panel.write(block.job, scratch_);
    std::array<RowIndex, kernels::kMaxPanelWidth> rows;
    const std::int32_t lost = panel.lost_rows(*block.job.terms, rows);
    if (lost > 0) compute_exactly(block, schedule_, {rows.data(), static_cast<std::size_t>(lost)});
  }
}

void Worker::run(const Job& job, std::span<PanelOutput> panels) {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;
  for (const PanelOutput& panel : panels) {
    begin = std::min<std::int64_t>(begin, panel.rows().panel().any_begin);
    end = std::max<std::int64_t>(end, panel.rows().panel().any_end);
  }
  for (std::int64_t chunk = begin / kChunkKeys * kChunkKeys; chunk < end; chunk += kChunkKeys) {
    run_chunk(job, panels, {chunk, std::min(chunk + kChunkKeys, end)});
    for (PanelOutput& panel : panels) panel.end_chunk();
  }
}

void Worker::run_chunk(const Job& job, std::span<PanelOutput> panels, RowRange keys) {
  check_cancelled();
  for (std::int64_t key = keys.begin; key < keys.end; key += kTileKeys) {
    const RowRange some{key, std::min(key + kTileKeys, job.terms->shape.kv_len)};
    const kernels::Tile place{.first_key = static_cast<std::int32_t>(key),
                              .num_keys = static_cast<std::int32_t>(some.end - key)};
    const auto sees = [&](const PanelOutput& panel) { return panel.rows().sees(place); };
    if (std::none_of(panels.begin(), panels.end(), sees)) continue;
    const kernels::Tile tile = reader_.read(some);
    for (PanelOutput& panel : panels) panel.add(tile, scratch_);
  }
}

}  // namespace heed::inline v0::fused
