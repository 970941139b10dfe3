// The weights of some rows of one key head, a tile of keys at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/engine/panel_weights.h"
#include "attention/engine/tile_map.h"

namespace heed { inline namespace v0 { namespace engine {

template <class Real>
struct WeightPanelMemory {
  RowsMemory<Real> rows;
  WeightsMemory<Real> weights;

  WeightPanelMemory() = default;
  WeightPanelMemory(const Schedule<Real>& schedule, Layout& layout)
      : rows(schedule, layout), weights(schedule, layout) {}
};

// Some rows and their weights.
template <class Real>
struct WeightPanel {
  PanelRows<Real> panel_rows;
  PanelWeights<Real> weights;

  WeightPanel(const Schedule<Real>& schedule, const WeightPanelMemory<Real>& parts,
              std::byte* memory)
      : panel_rows(schedule, parts.rows, memory), weights(schedule, parts.weights, memory) {}

  const PanelRows<Real>& rows() const { return panel_rows; }
};

template <class Real>
struct WeightBlockMemory {
  StagingMemory<Real> staging;
  WeightScratchMemory<Real> scratch;
  Piece<Real> query;  // [panel_rows][head_dim], for queries of another type
  Repeated<WeightPanelMemory<Real>> panels;

  WeightBlockMemory() = default;
  WeightBlockMemory(const Schedule<Real>& schedule, Layout& layout)
      : staging(schedule, layout),
        scratch(schedule, layout),
        query(layout.add<Real>(schedule.converts_query ? schedule.panel_rows * schedule.head_dim
                                                       : 0)),
        panels(schedule, schedule.panels_per_block, layout) {}
};

// Goes over the keys twice: first for the rows' denominators, then for their weights.
template <class Real>
class WeightBlock {
 public:
  WeightBlock(const Schedule<Real>& schedule, const WeightBlockMemory<Real>& parts,
              std::byte* memory);

  // The first pass. The rows share a key head and are at most schedule.block_rows().
  void start(const Call<Real>& job, std::int64_t batch, std::span<const RowIndex> rows);

  std::size_t num_panels() const { return num_panels_; }
  const PanelRows<Real>& rows(std::size_t panel) const { return panels_[panel].panel_rows; }
  // The denominators of a panel's rows.
  const PanelWeights<Real>& weights(std::size_t panel) const { return panels_[panel].weights; }

  // The second pass: calls use(panel, its weights for a tile, the tile) for every tile that the
  // panel visits, in the order of keys.
  template <class Use>
  void visit(const Use& use) {
    walk([&](const kernels::BasicTile<Real>& tile) {
      for (std::size_t i = 0; i < num_panels_; ++i) {
        if (rows(i).sees(tile)) use(i, panels_[i].weights.weigh(tile, scratch_), tile);
      }
    });
  }

 private:
  template <class Use>
  void walk(const Use& use) {
    walk_tiles(std::span(panels_.data(), num_panels_), job_->request->keys(),
               [&](RowRange keys) { use(job_->keys->tile(batch_, kv_head_, keys, staging_)); });
  }

  const Call<Real>* job_ = nullptr;
  std::int64_t batch_ = 0;
  std::int64_t kv_head_ = 0;
  std::int32_t most_rows_;
  Staging<Real> staging_;
  WeightScratch<Real> scratch_;
  Real* staged_query_;
  std::vector<WeightPanel<Real>> panels_;
  std::size_t num_panels_ = 0;
};

}}}  // namespace heed::v0::engine
