// How attention of given shapes is divided: see job.h.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "attention/fused/job.h"
#include "attention/fused/panel_rows.h"
#include "attention/fused/worker.h"

namespace heed::inline v0::fused {

namespace {

// What a tile is used for while it is in the cache; staged tiles cost more and are used for more.
constexpr std::int32_t kPanelsPerBlock = 4;
constexpr std::int32_t kPanelsPerStagedBlock = 8;

// Blocks a thread should find, so that none waits long for another at the end.
constexpr std::int64_t kBlocksPerThread = 4;

// Work for which waking another thread pays, in multiply-adds: some ten microseconds.
constexpr double kWorkPerThread = 1e6;

// So many rows are faster one by one, with keys and columns in the lanes, than as a panel: 3 where
// a vector has 16 lanes, 2 of 8 and 1 of 4, from measurements.
std::int64_t most_single_rows(std::int32_t lanes) { return (lanes + 4) / 6; }

// Rows this far apart, in bytes, fall on few cache sets and on a page each: from measurements.
constexpr std::int64_t kHostileStride = 2048;

bool is_staged(const AttentionShapes& shapes, std::int64_t stride) {
  if (shapes.dtype != DataType::kFloat32) return true;
  // For few rows a copy costs more than it saves.
  const bool is_reused = shapes.q_len * shapes.num_heads >= 64 * shapes.num_kv_heads;
  return is_reused && std::abs(stride) * std::int64_t{sizeof(float)} >= kHostileStride;
}

// As many of `threads` as the work is worth, at least one.
int useful_threads(const Terms<float>& terms, int threads) {
  const double pairs = static_cast<double>(terms.shape.batch * terms.shape.num_heads) *
                       static_cast<double>(terms.shape.q_len) *
                       static_cast<double>(terms.shape.kv_len);
  const double work = pairs * static_cast<double>(terms.head_dim + terms.value_dim);
  return std::clamp(static_cast<int>(std::min<double>(work / kWorkPerThread, threads)), 1,
                    std::max(threads, 1));
}

}  // namespace

Schedule make_schedule(const kernels::KernelTable& table, const Terms<float>& terms,
                       const AttentionShapes& shapes, int threads, bool splits_panels) {
  Schedule schedule;
  schedule.table = &table;
  schedule.head_dim = terms.head_dim;
  schedule.value_dim = terms.value_dim;
  schedule.kv_len = terms.shape.kv_len;
  schedule.has_irregular_mask = !terms.mask.is_structural();
  schedule.widens_query = schedule.narrows_out = shapes.dtype != DataType::kFloat32;
  schedule.stages_key = is_staged(shapes, shapes.key_stride);
  schedule.stages_value = is_staged(shapes, shapes.value_stride);
  const std::int64_t rows = terms.shape.q_len * terms.heads_per_kv_head;
  const std::int64_t vectors =
      std::clamp<std::int64_t>((rows + table.lanes - 1) / table.lanes, 1, 3);
  const bool is_plain =
      splits_panels && !modifies_scores(terms) && terms.dropout.keeps_everything();
  schedule.panel_rows = is_plain && rows <= most_single_rows(table.lanes)
                            ? 1
                            : static_cast<std::int32_t>(vectors) * table.lanes;
  const std::int64_t panels = std::max<std::int64_t>(1, (rows - 1) / schedule.panel_rows + 1);
  const std::int64_t all_panels = panels * terms.shape.batch * terms.num_kv_heads();
  const int useful = useful_threads(terms, threads);
  if (all_panels < useful && terms.shape.kv_len > kernels::kChunkKeys) {
    divide_keys(schedule, all_panels);
  }
  schedule.workers = static_cast<int>(
      std::min<std::int64_t>(useful, std::max<std::int64_t>(1, all_panels * schedule.key_chunks)));
  const std::int32_t most =
      schedule.stages_key || schedule.stages_value ? kPanelsPerStagedBlock : kPanelsPerBlock;
  const std::int64_t fair = all_panels / (schedule.workers * kBlocksPerThread);
  schedule.panels_per_block = static_cast<std::int32_t>(
      std::min(panels, schedule.workers == 1 ? most : std::clamp<std::int64_t>(fair, 1, most)));
  schedule.bytes_per_worker = Worker::bytes(schedule);
  return schedule;
}

void divide_keys(Schedule& schedule, std::int64_t panels) {
  schedule.panels_per_block = 1;
  schedule.key_chunks = (schedule.kv_len - 1) / kernels::kChunkKeys + 1;
  schedule.saved_chunks = checked_multiply(panels, schedule.key_chunks);
  schedule.bytes_per_chunk = SavedChunk::bytes(schedule);
}

std::size_t Schedule::workspace_bytes() const {
  const std::int64_t bytes =
      checked_multiply(workers, static_cast<std::int64_t>(bytes_per_worker)) +
      checked_multiply(saved_chunks, static_cast<std::int64_t>(bytes_per_chunk));
  return static_cast<std::size_t>(bytes) + kCacheLine;
}

}  // namespace heed::inline v0::fused
