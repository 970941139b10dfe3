#include "attention/fused/worker.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <type_traits>

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

void Worker::compute(const Job& job, std::int64_t batch, std::int64_t kv_head, RowRange rows) {
  reader_.start(job, batch, kv_head);
  std::size_t count = 0;
  for (std::int64_t first = rows.begin; first < rows.end; first += schedule_.panel_rows, ++count) {
    const RowRange some{first, std::min<std::int64_t>(first + schedule_.panel_rows, rows.end)};
    panels_[count].start(job, batch, kv_head, some, scratch_);
  }
  const std::span<PanelOutput> panels(panels_, count);
  run(job, panels);
  for (PanelOutput& panel : panels) {
    // NaN stays: whoever met one has it now. If it was hidden, it met a weight of 0 and must go.
    if (!panel.is_finite()) {
      panel.restart_guarded();
      run(job, {&panel, 1});
    }
    panel.write(job, scratch_);
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
    const std::int64_t chunk_end = std::min(chunk + kChunkKeys, end);
    for (std::int64_t key = chunk; key < chunk_end; key += kTileKeys) {
      const RowRange keys{key, std::min(key + kTileKeys, job.terms->shape.kv_len)};
      const auto sees = [&](const PanelOutput& panel) {
        return panel.rows().panel().any_begin < keys.end && panel.rows().panel().any_end > key;
      };
      if (std::none_of(panels.begin(), panels.end(), sees)) continue;
      const kernels::Tile tile = reader_.read(keys);
      for (PanelOutput& panel : panels) panel.add(tile, scratch_);
    }
    for (PanelOutput& panel : panels) panel.end_chunk();
  }
}

}  // namespace heed::inline v0::fused
