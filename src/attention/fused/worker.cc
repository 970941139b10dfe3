#include "attention/fused/worker.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <type_traits>

namespace heed::inline v0::fused {

using kernels::kChunkKeys;
using kernels::kTileKeys;

Worker::Worker(const Schedule& schedule, Workspace workspace)
    : schedule_(schedule), panels_(workspace.take<PanelOutput>(schedule.panels_per_block)) {
  static_assert(std::is_trivially_destructible_v<PanelOutput>);
  for (std::int32_t i = 0; i < schedule.panels_per_block; ++i) {
    if (panels_ == nullptr) {
      PanelOutput(schedule, workspace);  // only to be measured
    } else {
      std::construct_at(panels_ + i, schedule, workspace);
    }
  }
  const std::int64_t keys = std::min<std::int64_t>(kTileKeys, schedule.kv_len);
  const std::int64_t width = schedule.panel_rows;
  scratch_.scores = workspace.floats(keys * width);
  if (schedule.drops_weights) scratch_.dropout = workspace.floats(keys * width);
  if (schedule.widens_query || schedule.narrows_out) {
    scratch_.rows = workspace.floats(width * std::max(schedule.head_dim, schedule.value_dim));
  }
  if (schedule.stages_key) staged_key_ = workspace.floats(keys * schedule.head_dim);
  if (schedule.stages_value) staged_value_ = workspace.floats(keys * schedule.value_dim);
  bytes_ = workspace.bytes();
}

std::size_t Worker::bytes(const Schedule& schedule) {
  return Worker(schedule, Workspace(kMeasureOnly)).bytes_;
}

void Worker::compute(const Job& job, std::int64_t batch, std::int64_t kv_head, RowRange rows) {
  batch_ = batch;
  kv_head_ = kv_head;
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
      const kernels::Tile tile = tile_at(job, keys);
      for (PanelOutput& panel : panels) panel.add(tile, scratch_);
    }
    for (PanelOutput& panel : panels) panel.end_chunk();
  }
}

kernels::Tile Worker::tile_at(const Job& job, RowRange keys) {
  kernels::Tile tile;
  tile.first_key = static_cast<std::int32_t>(keys.begin);
  tile.num_keys = static_cast<std::int32_t>(keys.end - keys.begin);
  tile.key = rows_at(job.key, keys, job.terms->head_dim, staged_key_, tile.key_stride);
  tile.value = rows_at(job.value, keys, job.terms->value_dim, staged_value_, tile.value_stride);
  return tile;
}

// The rows as floats: where they lie, or a copy in `staged` unless that is null.
const float* Worker::rows_at(const Rows& rows, RowRange keys, std::int64_t dim, float* staged,
                             std::int64_t& stride) const {
  const std::byte* first = rows.row(batch_, kv_head_, keys.begin);
  if (staged == nullptr) {
    stride = rows.row_stride / static_cast<std::int64_t>(sizeof(float));
    return reinterpret_cast<const float*>(first);
  }
  stride = dim;
  for (std::int64_t k = 0; k < keys.end - keys.begin; ++k) {
    schedule_.table->widen(rows.type, first + k * rows.row_stride, dim, staged + k * dim);
  }
  return staged;
}

}  // namespace heed::inline v0::fused
