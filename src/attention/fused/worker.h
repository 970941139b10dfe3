// What one thread does and needs: one block of panels at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/fused/job.h"
#include "attention/fused/panel_output.h"
#include "attention/fused/tile_reader.h"

namespace heed::inline v0::fused {

class Worker {
 public:
  Worker(const Schedule& schedule, Workspace workspace);

  // Memory a worker needs, in bytes.
  static std::size_t bytes(const Schedule& schedule);

  // Computes a block and writes the result.
  void compute(const Block& block);

  // The same in two steps, for a block of one panel: first each chunk of keys, counted from 0, then
  // what these left behind, in order.
  void compute_chunk(const Block& block, std::int64_t chunk, SavedChunk saved);
  template <class SavedAt>
  void merge_chunks(const Block& block, const SavedAt& saved_at) {
    const std::span<PanelOutput> panels = start(block);
    for (std::int64_t chunk = 0; chunk < schedule_.key_chunks; ++chunk) {
      const SavedChunk saved = saved_at(chunk);
      if (saved.is_seen()) panels.front().take_over(saved);
    }
    finish(block, panels);
  }

 private:
  std::span<PanelOutput> start(const Block& block);
  // All tiles that any of the panels sees, chunk by chunk; or those of one chunk.
  void run(const Job& job, std::span<PanelOutput> panels);
  void run_chunk(const Job& job, std::span<PanelOutput> panels, RowRange keys);
  void finish(const Block& block, std::span<PanelOutput> panels);

  const Schedule& schedule_;
  TileReader reader_;
  PanelOutput* panels_;  // [panels_per_block], in the workspace
  TileScratch scratch_;
  std::size_t bytes_ = 0;
};

}  // namespace heed::inline v0::fused
