// The gradients of one panel's rows, and what they add to those of the keys they see.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "attention/fused/backward_job.h"
#include "attention/fused/panel_rows.h"
#include "attention/fused/panel_weights.h"
#include "attention/kernels/backward.h"
#include "attention/kernels/kernels.h"

namespace heed::inline v0::fused {

// What the panels of a worker share: memory for one tile, [kTileKeys][panel_rows] each, and for the
// output of a panel's rows.
struct GradientScratch {
  ScoreScratch scores;   // which become weights
  float* out = nullptr;  // [value_dim][panel_rows]
  float* grad_scores = nullptr;
  float* dropout = nullptr;  // where weights are dropped
};

// What a panel's rows belong to, and where they add.
struct PanelTask {
  const BackwardJob& job;
  BackwardTask task;
  TaskSums sums;
};

class PanelGradients {
 public:
  PanelGradients(const Schedule& schedule, Workspace& workspace);

  // Prepares for some rows of a task, and adds their gradient to that of the sinks. Those whose lse
  // says too little get no gradient here: they are listed in lost_rows().
  void start(const PanelTask& task, RowRange rows, const GradientScratch& scratch);
  std::span<const RowIndex> lost_rows() const {
    return {lost_rows_.data(), static_cast<std::size_t>(num_lost_)};
  }

  // Prepares for such rows, with what is known of their weights. The schedule keeps scores.
  void start(const PanelTask& task, std::span<const RowIndex> rows, const PanelWeights& weights,
             const GradientScratch& scratch);

  // Adds a tile of keys, all finite or not.
  void add(const kernels::Tile& tile, bool has_finite_keys, const GradientScratch& scratch);

  // Writes the gradients of the rows' queries.
  void write(const BackwardJob& job) const;

  const PanelRows& rows() const { return rows_; }

 private:
  void start(const PanelTask& task, const GradientScratch& scratch);
  void find_lost_rows(const PanelTask& task);
  void start_rows(const BackwardJob& job);
  void find_delta(const BackwardJob& job, float* out);
  void add_sinks(const BackwardJob& job) const;
  const float* row_of(const Rows& rows, std::int32_t r) const;
  float lse_of(const BackwardJob& job, std::int32_t r) const;
  double sink_weight(const BackwardJob& job, std::int32_t r) const;
  bool weigh(const kernels::Tile& tile, const GradientScratch& scratch);
  void begin_chunk(std::int64_t chunk);
  void add_values(const kernels::Tile& tile, float* weights);
  void add_to_options(const detail::ScoreTile& place, const float* grad_scores) const;
  void add_bias(const detail::ScoreTile& place, const float* grad_scores) const;

  const Schedule& schedule_;
  const kernels::BackwardTable& table_;
  PanelRows rows_;
  kernels::Panel query_panel_;     // its output is the gradient of the query
  kernels::Panel grad_out_panel_;  // its query is grad_out
  TaskSums sums_;
  BackwardTask task_ = {};
  std::int64_t first_head_ = 0;
  float factor_ = 0;  // of scores, and so of the gradients of query and key
  bool modifies_scores_ = false;
  bool has_finite_rows_ = true;
  std::int64_t chunk_ = -1;              // the one whose offsets these are
  const PanelWeights* exact_ = nullptr;  // of rows whose lse is not enough
  std::array<RowIndex, kernels::kMaxPanelWidth> lost_rows_;
  std::int32_t num_lost_ = 0;

  float* grad_out_;    // [value_dim][width]
  float* grad_query_;  // [head_dim][width]
  float* lse_;         // [width]: infinite for rows that weigh nothing
  float* minus_m_;     // [width]: the offsets of the scores, as in the forward pass
  float* threshold_;   // [width]
  float* delta_;       // [width]
  float* query_rows_;
  float* grad_out_rows_;
  kernels::RowBlocks query_blocks_;
  kernels::RowBlocks grad_out_blocks_;
};

}  // namespace heed::inline v0::fused
