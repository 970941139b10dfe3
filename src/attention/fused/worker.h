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

  // Computes these rows of a key head, at most a block, and writes the result.
  void compute(const Job& job, std::int64_t batch, std::int64_t kv_head, RowRange rows);

 private:
  // All tiles that any of the panels sees, chunk by chunk.
  void run(const Job& job, std::span<PanelOutput> panels);

  const Schedule& schedule_;
  TileReader reader_;
  PanelOutput* panels_;  // [panels_per_block], in the workspace
  TileScratch scratch_;
  std::size_t bytes_ = 0;
};

}  // namespace heed::inline v0::fused
