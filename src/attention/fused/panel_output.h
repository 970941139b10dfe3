// The attention of one panel's rows over the keys seen so far.
#pragma once

#include <cstdint>
#include <span>

#include "attention/fused/job.h"
#include "attention/fused/panel_rows.h"
#include "attention/kernels/kernels.h"

namespace heed::inline v0::fused {

// What the panels of a worker share: memory for one tile.
struct TileScratch : ScoreScratch {
  float* rows = nullptr;  // [panel_rows][head_dim or value_dim], where tensors are not float
};

// The state of a panel over one chunk of keys, kept until all are there.
class SavedChunk {
 public:
  SavedChunk(const Schedule& schedule, Workspace workspace);

  // Memory of one, in bytes.
  static std::size_t bytes(const Schedule& schedule);

  const kernels::PanelState& state() const { return state_; }
  // Whether some row saw a key; if not, the state means nothing.
  bool is_seen() const { return *seen_; }
  void set_seen(bool seen) { *seen_ = seen; }

 private:
  bool* seen_;
  kernels::PanelState state_;
  std::size_t bytes_;
};

class PanelOutput {
 public:
  PanelOutput(const Schedule& schedule, Workspace& workspace);

  // Prepares for the rows of a block, with nothing seen yet.
  void start(const Block& block, const TileScratch& scratch);

  // Adds a tile of keys.
  void add(const kernels::Tile& tile, const TileScratch& scratch);

  // Puts what was seen since the last call into the total.
  void end_chunk();

  // Uses this memory for the next chunk, or takes over what is in it already.
  void compute_in(const SavedChunk& chunk) { part_ = chunk.state(); }
  void take_over(const SavedChunk& chunk);
  bool has_seen_chunk() const { return has_part_; }

  // Whether every row's result is a finite number.
  bool is_finite() const;
  // Starts again, multiplying only by values that are seen.
  void restart_guarded();

  void write(const Job& job, const TileScratch& scratch) const;

  // Puts the rows whose results say too little, because their scores are too large, into `rows` and
  // returns how many these are.
  std::int32_t lost_rows(const Terms<float>& terms, std::span<RowIndex> rows) const;

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
  bool is_lost(const Terms<float>& terms, std::int32_t r) const;
  void begin_chunk();
  void forget(const kernels::PanelState& state) const;

  const Schedule& schedule_;
  PanelRows rows_;
  kernels::Panel panel_;
  // Memory for two states. The first chunk's state becomes the total, so that one chunk needs one.
  kernels::PanelState first_state_;
  kernels::PanelState second_state_;
  kernels::PanelState part_;   // of the current chunk of keys
  kernels::PanelState total_;  // of the chunks before
  bool has_part_ = false;
  bool has_total_ = false;
};

}  // namespace heed::inline v0::fused
