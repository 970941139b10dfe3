// Statistics of the weights of a panel's rows, one number or a few for each row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/engine/weight_block.h"
#include "heed/attention/statistics.h"

namespace heed { inline namespace v0 { namespace engine {

template <class Real>
struct StatisticsMemory {
  Piece<Real> entropy_sums;
  Piece<Real> largest_weights;
  Piece<std::int32_t> largest_keys;

  StatisticsMemory() = default;
  // `kept` is the number of largest weights to keep for each row.
  StatisticsMemory(const Schedule<Real>& schedule, std::int64_t kept, Layout& layout)
      : entropy_sums(layout.add<Real>(schedule.panel_rows)),
        largest_weights(layout.add<Real>(checked_multiply(kept, schedule.panel_rows))),
        largest_keys(layout.add<std::int32_t>(checked_multiply(kept, schedule.panel_rows))) {}
};

template <class Real>
class PanelStatistics {
 public:
  PanelStatistics(const Schedule<Real>& schedule, const StatisticsMemory<Real>& parts,
                  std::byte* memory);

  // Starts with a panel of this width and no keys.
  void start(std::int32_t width);

  // Adds a tile. Tiles must come in the order of their keys.
  void add(const kernels::BasicWeightTile<Real>& tile);

  // Writes the statistics of a panel of the block, except the key mass, after all weights were
  // added.
  void write(const WeightBlock<Real>& block, std::size_t panel,
             BasicAttentionStatistics<Real>& statistics) const;

 private:
  void write_row(std::int32_t r, Real lse, std::int64_t row,
                 BasicAttentionStatistics<Real>& statistics) const;

  const kernels::BasicKernelTable<Real>& table_;
  std::int32_t width_ = 0;
  Real* entropy_sums_;  // [width]: Σ weight · log2 weight
  kernels::BasicPanelLargest<Real> largest_;
};

}}}  // namespace heed::v0::engine
