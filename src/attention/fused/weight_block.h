// The weights of some rows of one key head, a tile of keys at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/fused/job.h"
#include "attention/fused/panel_rows.h"
#include "attention/fused/panel_weights.h"
#include "attention/fused/tile_reader.h"
#include "heed/function_ref.h"

namespace heed::inline v0::fused {

// A schedule for problems without values, whose terms drop no weights.
Schedule make_weight_schedule(const kernels::KernelTable& table, const Terms<float>& terms,
                              const AttentionShapes& shapes, int threads);

// How many queries of a head are taken together where something is added up over queries: whole
// panels, but for the last. What segments have summed is added in order, so that threads may share
// a head and no bit depends on how, for memory for a few sums.
std::int64_t queries_per_segment(std::int64_t q_len, std::int64_t panel_rows);

// Memory for what `build` makes of a workspace.
template <class Build>
Tensor<float> memory_for(Build build) {
  Workspace all(kMeasureOnly);
  build(all);
  return Tensor<float>::uninitialized({static_cast<std::int64_t>(all.bytes() / sizeof(float))});
}

inline Workspace workspace_in(Tensor<float>& memory) {
  return Workspace(reinterpret_cast<std::byte*>(memory.data()));
}

// Passes over the keys twice: first for the rows' denominators, then for their weights.
class WeightBlock {
 public:
  WeightBlock(const Schedule& schedule, Workspace& workspace);

  // The first pass, over rows that share a key head, at most schedule.block_rows().
  void start(const Job& job, std::int64_t batch, std::span<const RowIndex> rows);

  std::size_t num_panels() const { return num_panels_; }
  const PanelRows& rows(std::size_t panel) const { return rows_[panel]; }
  // The natural logarithm of the denominator of row r of a panel.
  float lse(std::size_t panel, std::int32_t r) const { return weights_[panel].lse(r); }

  // The second pass: calls use(panel, its weights for a tile) for every tile that a row of the
  // panel sees, tiles in the order of their keys.
  void visit(FunctionRef<void(std::size_t panel, const kernels::WeightTile&)> use);

 private:
  template <class Use>
  void for_each_tile(Use use);

  const Schedule& schedule_;
  const Job* job_ = nullptr;
  TileReader reader_;
  std::size_t num_panels_ = 0;
  std::vector<PanelRows> rows_;
  std::vector<PanelWeights> weights_;
  WeightScratch scratch_;
  float* staged_query_ = nullptr;  // [panel_rows][head_dim]
};

}  // namespace heed::inline v0::fused
