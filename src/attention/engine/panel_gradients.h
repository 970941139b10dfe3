// The gradients of one panel's rows, and their contributions to those of the keys that they see.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "attention/engine/backward_division.h"
#include "attention/engine/backward_sums.h"
#include "attention/engine/kept_weights.h"
#include "attention/engine/panel_rows.h"
#include "attention/engine/panel_weights.h"
#include "attention/engine/seen_tile.h"
#include "attention/kernels/panel/backward.h"

namespace heed { inline namespace v0 { namespace engine {

// Memory that the panels of a worker share: for one tile, [kTileKeys][panel_rows] each, and for
// some rows of tensors.
template <class Real>
struct GradientScratch {
  ScoreScratch<Real> scores;  // become weights
  Real* grad_scores = nullptr;
  Real* dropout = nullptr;       // null without dropout
  Real* pairs_of_out = nullptr;  // [value_dim][panel_rows], for pairs only
  // Where tensors are of another type than Real:
  Real* rows = nullptr;  // [panel_rows][head_dim or value_dim]
  Real* row = nullptr;   // [head_dim or value_dim]
};

template <class Real>
struct GradientScratchMemory {
  ScoreMemory<Real> scores;
  Piece<Real> grad_scores;
  Piece<Real> dropout;
  Piece<Real> pairs_of_out;
  Piece<Real> rows;
  Piece<Real> row;

  GradientScratchMemory() = default;
  GradientScratchMemory(const Schedule<Real>& schedule, Layout& layout)
      : scores(schedule, layout, schedule.has_derivatives),
        grad_scores(layout.add<Real>(ScoreMemory<Real>::cells(schedule))),
        dropout(layout.add<Real>(schedule.has_dropout ? ScoreMemory<Real>::cells(schedule) : 0)),
        pairs_of_out(
            layout.add<Real>(schedule.stages_pairs ? schedule.value_dim * schedule.panel_rows : 0)),
        rows(layout.add<Real>(schedule.panel_rows * longest_row(schedule))),
        row(layout.add<Real>(longest_row(schedule))) {}

  GradientScratch<Real> in(std::byte* memory) const {
    return {scores.in(memory),       grad_scores.in(memory), dropout.in(memory),
            pairs_of_out.in(memory), rows.in(memory),        row.in(memory)};
  }

 private:
  static std::int64_t longest_row(const Schedule<Real>& schedule) {
    return schedule.converts_query ? std::max(schedule.head_dim, schedule.value_dim) : 0;
  }
};

// The call and the task of a panel's rows, and the sums to which they add.
template <class Real>
struct PanelTask {
  const BackwardCall<Real>& job;
  BackwardTask task;
  const TaskSums<Real>& sums;
};

template <class Real>
struct GradientsMemory {
  RowsMemory<Real> rows;
  Piece<Real> grad_out;    // [value_dim][width]
  Piece<Real> grad_query;  // [head_dim][width]
  Piece<Real> lse;         // [width]: infinite for rows whose weights are 0
  Piece<Real> lse_low;     // [width]: its rounding error, unless grad_out is corrected instead
  Piece<Real> minus_m;     // [width]: the offsets of the scores, as in the forward pass
  Piece<Real> threshold;   // [width]
  Piece<Real> delta;       // [width]
  Piece<Real> query_rows;
  Piece<Real> grad_out_rows;

  GradientsMemory() = default;
  GradientsMemory(const Schedule<Real>& schedule, Layout& layout);
};

template <class Real>
class PanelGradients {
 public:
  PanelGradients(const Schedule<Real>& schedule, const GradientsMemory<Real>& parts,
                 std::byte* memory);

  // Sets the panel to some rows of a task. Rows whose weights cannot be computed from their lse get
  // no gradient here and are listed in lost_rows().
  void place(const PanelTask<Real>& task, const RowBlock& rows);
  // Reads the rows, and adds their gradients to those of the sinks. To be called before the first
  // tile is added.
  void start(const PanelTask<Real>& task, const GradientScratch<Real>& scratch);
  bool is_started() const { return rows_.is_packed(); }
  std::span<const RowIndex> lost_rows() const {
    return {lost_rows_.data(), static_cast<std::size_t>(num_lost_)};
  }

  // Both in one, for lost rows, whose denominators are in `weights`. The schedule keeps scores.
  void start(const PanelTask<Real>& task, std::span<const RowIndex> rows,
             const PanelWeights<Real>& weights, const GradientScratch<Real>& scratch);

  // Makes row r continue with the sums of a row of another panel, which has the same query. Both
  // panels have started, or the other one has no sums yet.
  void take_row(std::int32_t r, const PanelGradients& from, std::int32_t from_r);

  // The number of these tiles, the first of which the rows visit, that are added together.
  std::int32_t tiles_together(std::span<const kernels::BasicTile<Real>> tiles) {
    return exact_ != nullptr ? 1 : tiles_alike(tiles, rows_, keys_);
  }
  // Adds tiles of keys. has_finite_keys is true if all of these are finite.
  void add(std::span<const kernels::BasicTile<Real>> tiles, bool has_finite_keys,
           const GradientScratch<Real>& scratch);

  // Writes the gradients of the rows' queries.
  void write(const BackwardCall<Real>& job, const GradientScratch<Real>& scratch) const;

  const PanelRows<Real>& rows() const { return rows_; }

 private:
  void find_kept(const BackwardCall<Real>& job, const RowBlock& rows);
  void find_lost_rows(const PanelTask<Real>& task);
  void start_rows(const BackwardCall<Real>& job, const GradientScratch<Real>& scratch);
  void read_lse(const BackwardCall<Real>& job);
  using RowPointers = std::array<const Real*, kernels::kMaxPanelWidth>;
  RowPointers read_rows(const Rows& tensor, std::int32_t dim,
                        const GradientScratch<Real>& scratch) const;
  void find_delta(const BackwardCall<Real>& job, const GradientScratch<Real>& scratch);
  RowPointers read_out(const BackwardCall<Real>& job, const GradientScratch<Real>& scratch) const;
  RowPointers rest_of_pairs(RowPointers rows, const GradientScratch<Real>& scratch) const;
  void add_sinks(const BackwardCall<Real>& job) const;
  Real lse_of(const BackwardCall<Real>& job, std::int32_t r) const;
  Real weight_factor(const BackwardCall<Real>& job, std::int32_t r) const;
  Real low_part(const BackwardCall<Real>& job, std::int32_t r) const;
  double sink_weight(const BackwardCall<Real>& job, std::int32_t r) const;
  void weigh(const kernels::BasicTile<Real>& tile, const GradientScratch<Real>& scratch);
  void begin_chunk(std::int64_t chunk);
  // The sums of the gradients of a tile's keys and values.
  struct TileSums {
    kernels::BasicKeySums<Real> key;
    kernels::BasicKeySums<Real> value;
  };
  TileSums sums_of(const kernels::BasicTile<Real>& tile, const KeySteps& seen) const;
  struct Weighed {
    const kernels::BasicTile<Real>& tile;
    const kernels::BasicPanel<Real>& panel;
    TileSums sums;
  };
  void pair_rows();
  void add_weighed(const Weighed& weighed, bool has_finite_keys,
                   const GradientScratch<Real>& scratch);
  void add_to_terms(const kernels::BasicScoreTile<Real>& place, Real* grad_scores) const;

  const Schedule<Real>& schedule_;
  const kernels::BasicBackwardTable<Real>& table_;
  PanelRows<Real> rows_;
  SeenKeys<Real> keys_;
  const TaskSums<Real>* sums_ = nullptr;
  const Request<Real>* request_ = nullptr;
  BackwardTask task_ = {};
  bool changes_scores_ = false;
  bool has_finite_rows_ = true;
  KeptPanel<const Real> kept_;                 // of the forward pass, if it kept any
  std::int64_t chunk_ = -1;                    // the chunk of the offsets
  const PanelWeights<Real>* exact_ = nullptr;  // for lost rows
  std::array<RowIndex, kernels::kMaxPanelWidth> lost_rows_;
  std::int32_t num_lost_ = 0;

  Real* grad_out_;
  Real* grad_query_;
  Real* lse_;
  Real* lse_low_;  // null if grad_out is corrected instead
  Real* delta_;
  Real* query_rows_;
  Real* grad_out_rows_;
  kernels::BasicPanelState<Real> offsets_;  // of the scores, as in the forward pass; it has no sums
  kernels::BasicRowVectors<Real> query_vectors_;
  kernels::BasicRowVectors<Real> grad_out_vectors_;
};

}}}  // namespace heed::v0::engine
