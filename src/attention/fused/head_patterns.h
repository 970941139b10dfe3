// The weights of some queries in all heads at once, a tile of keys at a time, and what is added up
// over them.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/fused/job.h"
#include "attention/fused/panel_rows.h"
#include "attention/fused/panel_weights.h"
#include "attention/fused/tile_reader.h"
#include "attention/pattern_sums.h"

namespace heed::inline v0::fused {

// A panel of queries for each head, so that the same lane is the same query in all of them. Passes
// over the keys twice: first for the denominators, then for the weights.
class HeadPatterns {
 public:
  HeadPatterns(const Schedule& schedule, std::int64_t num_heads, Workspace& workspace);

  // Adds the queries begin ≤ q < end, at most schedule.panel_rows, of one sequence.
  void add(const Job& job, std::int64_t batch, RowRange queries, PatternSums& sums);

 private:
  // What is known of a head's rows.
  struct Head {
    Head(const Schedule& schedule, Workspace& workspace);

    PanelRows rows;
    PanelWeights panel;
    float* weights;       // [kTileKeys][width]: of the tile at hand
    float* keys_seen;     // [width]
    float* entropy_sums;  // [width]: Σ weight · log2 weight
    float* squares;       // [width]
    kernels::WeightTile tile;
    std::vector<RowKind> kinds;
  };

  void start(const Job& job, std::int64_t batch, RowRange queries);
  void add_weights(PatternSums& sums);
  static bool sees(const Head& head, RowRange keys);
  void weigh(Head& head, RowRange keys);
  void add_masses(const Head& head, std::int64_t index, PatternSums& sums) const;
  void add_offsets(const Head& head, std::int64_t index, PatternSums& sums) const;
  void add_products();
  void finish(PatternSums& sums) const;
  float* products(std::size_t i, std::size_t j) const;

  template <class Use>
  void for_each_tile(Use use) const;

  const kernels::KernelTable& table_;
  const Job* job_ = nullptr;
  std::int64_t batch_ = 0;
  std::int32_t width_ = 0;
  TileReader reader_;
  std::vector<Head> heads_;
  WeightScratch scratch_;
  float* staged_query_ = nullptr;  // [panel_rows][head_dim]
  float* products_ = nullptr;      // [pairs][panel_rows]: Σ a · b of two heads
};

// What the heads do. The schedule is one of make_weight_schedule(); lengths are checked.
AttentionDiagnostics diagnose(const Job& job, const Schedule& schedule,
                              const DiagnosticsOptions& lengths);

}  // namespace heed::inline v0::fused
