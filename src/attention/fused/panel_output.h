// The attention of one panel's rows over the keys seen so far.
#pragma once

#include <cstdint>

#include "attention/fused/job.h"
#include "attention/fused/panel_rows.h"
#include "attention/kernels/kernels.h"

namespace heed::inline v0::fused {

// What the panels of a worker share: memory for one tile.
struct TileScratch : ScoreScratch {
  float* rows = nullptr;  // [panel_rows][head_dim or value_dim], where tensors are not float
};

class PanelOutput {
 public:
  PanelOutput(const Schedule& schedule, Workspace& workspace);

  // Prepares for some rows of a key head, with nothing seen yet.
  void start(const Job& job, std::int64_t batch, std::int64_t kv_head, RowRange rows,
             const TileScratch& scratch);

  // Adds a tile of keys.
  void add(const kernels::Tile& tile, const TileScratch& scratch);

  // Puts what was seen since the last call into the total.
  void end_chunk();

  // Whether every row's result is a finite number.
  bool is_finite() const;
  // Starts again, multiplying only by values that are seen.
  void restart_guarded();

  void write(const Job& job, const TileScratch& scratch) const;

  const PanelRows& rows() const { return rows_; }

 private:
  // The denominator of a row's softmax, sum · 2^m, and what turns its output into the result.
  struct Normaliser {
    float factor;
    float m;
    float sum;

    float lse() const;
  };

  Normaliser normaliser_of(const Terms<float>& terms, std::int32_t r) const;
  void begin_chunk();
  void forget(const kernels::PanelState& state) const;

  const Schedule& schedule_;
  PanelRows rows_;
  kernels::Panel panel_;
  kernels::PanelState part_;   // of the current chunk of keys
  kernels::PanelState total_;  // of the chunks before
  bool has_part_ = false;
  bool has_total_ = false;
};

}  // namespace heed::inline v0::fused
