#include "attention/fused/tile_reader.h"

#include <algorithm>

namespace heed::inline v0::fused {

TileReader::TileReader(const Schedule& schedule, Workspace& workspace) : schedule_(schedule) {
  const std::int64_t keys = std::min<std::int64_t>(kernels::kTileKeys, schedule.kv_len);
  if (schedule.stages_key) staged_key_ = workspace.floats(keys * schedule.head_dim);
  if (schedule.stages_value) staged_value_ = workspace.floats(keys * schedule.value_dim);
}

void TileReader::start(const Job& job, std::int64_t batch, std::int64_t kv_head) {
  job_ = &job;
  batch_ = batch;
  kv_head_ = kv_head;
}

kernels::Tile TileReader::read(RowRange keys) {
  kernels::Tile tile;
  tile.first_key = static_cast<std::int32_t>(keys.begin);
  tile.num_keys = static_cast<std::int32_t>(keys.end - keys.begin);
  tile.key = rows_at(job_->key, keys, job_->terms->head_dim, staged_key_, tile.key_stride);
  tile.value = rows_at(job_->value, keys, job_->terms->value_dim, staged_value_, tile.value_stride);
  return tile;
}

// The rows as floats: where they lie, or a copy in `staged` unless that is null.
const float* TileReader::rows_at(const Rows& rows, RowRange keys, std::int64_t dim, float* staged,
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
