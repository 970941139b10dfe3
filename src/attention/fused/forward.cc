#include "attention/fused/forward.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <vector>

#include "attention/fused/panel_rows.h"
#include "heed/parallel.h"

namespace heed::inline v0::fused {

namespace {

// Panels that share one pass over the keys: what a tile is used for while it is in the cache.
constexpr std::int64_t kPanelsPerBlock = 4;

// Keys after which a row's state is merged into its total and started anew, so that long sequences
// can be divided: a part of the canonical order of reduction.
constexpr std::int64_t kChunkKeys = 1024;

// What one thread needs: a block of panels and room for a tile's scores and dropout.
class Worker {
 public:
  Worker(const Problem<float>& problem, const kernels::KernelTable& table, Workspace workspace)
      : problem_(problem) {
    panels_.reserve(kPanelsPerBlock);
    for (std::int64_t i = 0; i < kPanelsPerBlock; ++i)
      panels_.emplace_back(problem, table, workspace);
    const std::int64_t cells = std::int64_t{kernels::kTileKeys} * 3 * table.lanes;
    scores_ = workspace.floats(cells);
    if (!problem.dropout.keeps_everything()) dropout_ = workspace.floats(cells);
    bytes_ = workspace.bytes();
  }

  std::size_t bytes() const { return bytes_; }

  // The rows first ≤ r < last of a key head, at most kPanelsPerBlock panels of them.
  void compute(std::int64_t batch, std::int64_t kv_head, RowRange rows, std::int64_t panel_rows) {
    batch_ = batch;
    kv_head_ = kv_head;
    std::size_t count = 0;
    for (std::int64_t first = rows.begin; first < rows.end; first += panel_rows, ++count) {
      panels_[count].start(batch, kv_head, first, std::min(panel_rows, rows.end - first));
    }
    const std::span<PanelRows> used(panels_.data(), count);
    run(used);
    // NaN stays: whoever met one has it now. If it was hidden, it met a weight of 0 and must go.
    for (PanelRows& panel : used) {
      if (panel.is_finite()) continue;
      panel.restart_guarded();
      run({&panel, 1});
    }
  }

  void write(TensorView<float> out, TensorView<float> lse, std::int64_t count) const {
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) panels_[i].write(out, lse);
  }

 private:
  // All tiles that any of the panels sees, chunk by chunk.
  void run(std::span<PanelRows> panels) {
    std::int64_t begin = std::numeric_limits<std::int64_t>::max();
    std::int64_t end = 0;
    for (const PanelRows& panel : panels) {
      begin = std::min<std::int64_t>(begin, panel.panel().any_begin);
      end = std::max<std::int64_t>(end, panel.panel().any_end);
    }
    for (std::int64_t chunk = begin / kChunkKeys * kChunkKeys; chunk < end; chunk += kChunkKeys) {
      const std::int64_t chunk_end = std::min(chunk + kChunkKeys, end);
      for (std::int64_t key = chunk; key < chunk_end; key += kernels::kTileKeys) {
        if (key + kernels::kTileKeys <= begin) continue;
        const kernels::Tile tile = tile_at(key);
        for (PanelRows& panel : panels) panel.add(tile, scores_, dropout_);
      }
      for (PanelRows& panel : panels) panel.end_chunk();
    }
  }

  kernels::Tile tile_at(std::int64_t first_key) const {
    const auto row = [&](const TensorView<const float>& tensor) {
      return tensor.data() + batch_ * tensor.stride(0) + kv_head_ * tensor.stride(1) +
             first_key * tensor.stride(2);
    };
    return {.key = row(problem_.key),
            .key_stride = problem_.key.stride(2),
            .value = row(problem_.value),
            .value_stride = problem_.value.stride(2),
            .first_key = static_cast<std::int32_t>(first_key),
            .num_keys = static_cast<std::int32_t>(
                std::min<std::int64_t>(kernels::kTileKeys, problem_.shape.kv_len - first_key))};
  }

  const Problem<float>& problem_;
  std::vector<PanelRows> panels_;
  float* scores_ = nullptr;
  float* dropout_ = nullptr;
  std::size_t bytes_ = 0;
  std::int64_t batch_ = 0;
  std::int64_t kv_head_ = 0;
};

struct FreeAligned {
  void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{64}); }
};

}  // namespace

void forward(const Problem<float>& problem, const kernels::KernelTable& table,
             TensorView<float> out, TensorView<float> lse) {
  const std::int64_t rows = problem.shape.q_len * problem.heads_per_kv_head;
  if (problem.shape.batch == 0 || problem.shape.num_heads == 0 || rows == 0) return;
  const std::int64_t num_kv_heads = problem.shape.num_heads / problem.heads_per_kv_head;
  const std::int64_t panel_rows = 3 * table.lanes;
  const std::int64_t block_rows = kPanelsPerBlock * panel_rows;
  const std::int64_t blocks = (rows + block_rows - 1) / block_rows;
  const std::int64_t items = problem.shape.batch * num_kv_heads * blocks;

  const std::int64_t workers = std::min<std::int64_t>(num_threads(), items);
  const std::size_t bytes = Worker(problem, table, Workspace(nullptr)).bytes();
  const std::unique_ptr<std::byte, FreeAligned> memory(static_cast<std::byte*>(::operator new (
      static_cast<std::size_t>(checked_multiply(workers, static_cast<std::int64_t>(bytes))),
      std::align_val_t{64})));

  std::atomic<std::int64_t> next = 0;
  parallel_for(0, workers, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t w = first; w < last; ++w) {
      Worker worker(problem, table, Workspace(memory.get() + static_cast<std::size_t>(w) * bytes));
      for (std::int64_t item = next++; item < items; item = next++) {
        // The last rows of a causal mask see the most keys: they go first, so that no thread is
        // left alone with a long block at the end.
        const std::int64_t head = item / blocks;
        const std::int64_t block = blocks - 1 - item % blocks;
        const RowRange range{block * block_rows, std::min((block + 1) * block_rows, rows)};
        worker.compute(head / num_kv_heads, head % num_kv_heads, range, panel_rows);
        worker.write(out, lse, (range.end - range.begin + panel_rows - 1) / panel_rows);
      }
    }
  });
}

}  // namespace heed::inline v0::fused
