// How attention of given shapes is divided: see job.h.
#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "attention/fused/job.h"
#include "attention/fused/worker.h"

namespace heed::inline v0::fused {

namespace {

constexpr std::size_t kCacheLine = 64;

// What a tile is used for while it is in the cache; staged tiles cost more and are used for more.
constexpr std::int32_t kPanelsPerBlock = 4;
constexpr std::int32_t kPanelsPerStagedBlock = 8;

// Blocks a thread should find, so that none waits long for another at the end.
constexpr std::int64_t kBlocksPerThread = 4;

// Work for which waking another thread pays, in multiply-adds: some ten microseconds.
constexpr double kWorkPerThread = 1e6;

// Rows this far apart, in bytes, fall on few cache sets and on a page each: from measurements.
constexpr std::int64_t kHostileStride = 2048;

bool is_staged(const AttentionShapes& shapes, std::int64_t stride) {
  if (shapes.dtype != DataType::kFloat32) return true;
  // For few rows a copy costs more than it saves.
  const bool is_reused = shapes.q_len * shapes.num_heads >= 64 * shapes.num_kv_heads;
  return is_reused && std::abs(stride) * std::int64_t{sizeof(float)} >= kHostileStride;
}

int useful_threads(const Terms<float>& terms, std::int64_t blocks, int threads) {
  const double pairs = static_cast<double>(terms.shape.batch * terms.shape.num_heads) *
                       static_cast<double>(terms.shape.q_len) *
                       static_cast<double>(terms.shape.kv_len);
  const double work = pairs * static_cast<double>(terms.head_dim + terms.value_dim);
  const double useful = std::min(work / kWorkPerThread, static_cast<double>(blocks));
  return std::clamp(static_cast<int>(std::min<double>(useful, threads)), 1, std::max(threads, 1));
}

}  // namespace

Schedule make_schedule(const kernels::KernelTable& table, const Terms<float>& terms,
                       const AttentionShapes& shapes, int threads) {
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
  schedule.panel_rows = static_cast<std::int32_t>(vectors) * table.lanes;
  const std::int64_t panels = std::max<std::int64_t>(1, (rows - 1) / schedule.panel_rows + 1);
  const std::int64_t all_panels = panels * terms.shape.batch * terms.num_kv_heads();
  schedule.workers = useful_threads(terms, all_panels, threads);
  const std::int32_t most =
      schedule.stages_key || schedule.stages_value ? kPanelsPerStagedBlock : kPanelsPerBlock;
  const std::int64_t fair = all_panels / (schedule.workers * kBlocksPerThread);
  schedule.panels_per_block = static_cast<std::int32_t>(
      std::min(panels, schedule.workers == 1 ? most : std::clamp<std::int64_t>(fair, 1, most)));
  schedule.bytes_per_worker = Worker::bytes(schedule);
  return schedule;
}

std::size_t Schedule::workspace_bytes() const {
  return static_cast<std::size_t>(
             checked_multiply(workers, static_cast<std::int64_t>(bytes_per_worker))) +
         kCacheLine;
}

}  // namespace heed::inline v0::fused
