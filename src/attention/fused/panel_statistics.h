// What is known of the weights of a panel's rows: one number or a few for each row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/fused/job.h"
#include "attention/fused/weight_block.h"
#include "attention/kernels/kernels.h"
#include "heed/statistics.h"

namespace heed::inline v0::fused {

class PanelStatistics {
 public:
  PanelStatistics(const Schedule& schedule, std::int64_t top_k, Workspace& workspace);

  // Prepares for a panel of this width, with nothing seen yet.
  void start(std::int32_t width);

  // Adds a tile: tiles come in the order of their keys.
  void add(const kernels::WeightTile& tile);

  // Writes the statistics of a panel of the block whose weights were added: all but the key mass.
  void write(const WeightBlock& block, std::size_t panel, AttentionStatistics& statistics) const;

 private:
  void write_row(std::int32_t r, float lse, std::int64_t row,
                 AttentionStatistics& statistics) const;

  const kernels::KernelTable& table_;
  std::int32_t width_ = 0;
  float* entropy_sums_;  // [width]: Σ weight · log2 weight
  kernels::PanelLargest largest_;
};

}  // namespace heed::inline v0::fused
