// The running softmax and output of one panel's rows over the keys seen so far.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "attention/engine/kept_weights.h"
#include "attention/engine/panel_rows.h"
#include "attention/engine/seen_tile.h"

namespace heed { inline namespace v0 { namespace engine {

template <class Real>
struct StateMemory {
  Piece<Real> minus_m;
  Piece<Real> threshold;
  Piece<Real> sum;
  Piece<Real> out;

  StateMemory() = default;
  // All pieces consist of whole vectors.
  StateMemory(const Schedule<Real>& schedule, Layout& layout)
      : minus_m(layout.add<Real>(schedule.panel_rows)),
        threshold(layout.add<Real>(schedule.panel_rows)),
        sum(layout.add<Real>(schedule.panel_rows)),
        out(layout.add<Real>(schedule.out_size())) {}

  kernels::BasicPanelState<Real> in(std::byte* memory) const {
    return {minus_m.in(memory), threshold.in(memory), sum.in(memory), out.in(memory)};
  }
};

// The state of a panel over one chunk of keys, kept until all chunks have been computed.
template <class Real>
struct SavedChunk {
  bool* is_seen = nullptr;  // true if some row saw a key; otherwise the state is meaningless
  kernels::BasicPanelState<Real> state;
};

template <class Real>
struct SavedChunkMemory {
  Piece<bool> is_seen;
  StateMemory<Real> state;

  SavedChunkMemory() = default;
  SavedChunkMemory(const Schedule<Real>& schedule, Layout& layout)
      : is_seen(layout.add<bool>(1)), state(schedule, layout) {}
  SavedChunk<Real> in(std::byte* memory) const { return {is_seen.in(memory), state.in(memory)}; }
};

template <class Real>
struct SoftmaxMemory {
  RowsMemory<Real> rows;
  // The state of the first chunk becomes the total, so that a single chunk needs one state only.
  StateMemory<Real> first;
  StateMemory<Real> second;
  bool has_second = false;

  SoftmaxMemory() = default;
  SoftmaxMemory(const Schedule<Real>& schedule, Layout& layout)
      : rows(schedule, layout),
        first(schedule, layout),
        has_second(schedule.kv_len > kernels::kChunkKeys) {
    if (has_second) second = StateMemory<Real>(schedule, layout);
  }
};

// The attention of a panel's rows. Tiles must come in the order of keys.
template <class Real>
class RunningSoftmax {
 public:
  RunningSoftmax(const Schedule<Real>& schedule, const SoftmaxMemory<Real>& parts,
                 std::byte* memory);

  // Starts with the rows of a block and no keys; their queries are packed when the first tile
  // comes. `staged_rows` has room for a panel's rows, [panel_rows][head_dim or value_dim], if
  // tensors are of another type.
  void start(const ForwardCall<Real>& job, const RowBlock& block, Real* staged_rows);

  // As above for some rows of a batch entry, which share a key head, and one tile of keys.
  void start(const ForwardCall<Real>& job, std::int64_t batch, std::span<const RowIndex> rows,
             RowRange keys, Real* staged_rows);

  // The number of these tiles, the first of which the rows visit, that are added together.
  std::int32_t tiles_together(std::span<const kernels::BasicTile<Real>> tiles) {
    return options_.guarded ? 1 : tiles_alike(tiles, rows_, keys_);
  }
  // Adds tiles of keys.
  void add(std::span<const kernels::BasicTile<Real>> tiles, const ScoreScratch<Real>& scratch);
  // Adds a tile of keys that the rows visit.
  void add(const kernels::BasicTile<Real>& tile, const ScoreScratch<Real>& scratch);
  // For decode: adds tiles of one chunk as they are stored. `next` is the tile that follows, or
  // null.
  void add(std::span<const kernels::StoredTile> tiles, const kernels::StoredTile* next,
           const ScoreScratch<Real>& scratch);

  // Merges the state of the current chunk into the total. To be called after the last tile as well.
  void end_chunk();

  // compute_in() uses this memory for the next chunk; take_over() merges the state that is in it.
  void compute_in(const SavedChunk<Real>& chunk) { part_ = chunk.state; }
  void take_over(const SavedChunk<Real>& chunk);
  bool has_seen_chunk() const { return has_part_; }

  // Prepares to move rows between panels: ends the chunks of keys before that of `key`, and clears
  // the sums of the panels `to`.
  static void begin_moved(std::span<RunningSoftmax> from, std::span<RunningSoftmax> to,
                          std::int64_t key);
  // Continues with the chunk of `key`.
  void enter_chunk_of(std::int64_t key);
  // After one of these two functions for both panels: makes row r continue with the sums of a row
  // of another panel.
  void take_row(std::int32_t r, const RunningSoftmax& from, std::int32_t from_r);

  // resume() starts with the sums of the rows over earlier keys; leave() writes their sums.
  void resume(const RowStates<Real>& states);
  void leave(const RowStates<Real>& states);

  // The factors that turn outputs into results, and the denominators of the softmax, sum · exp(m ·
  // unit).
  struct Normalisers {
    using PerRow = std::array<Real, kernels::kMaxPanelWidth>;

    alignas(64) PerRow factor;
    PerRow m;
    PerRow sum;
    double unit;  // the natural logarithm of the base of 2 in which m counts

    double lse(std::int32_t r) const;
  };
  Normalisers normalisers(const Request<Real>& request) const;

  // True if the results of all rows are finite.
  bool is_finite() const;
  // Starts again, with products only with values that are seen.
  void restart_guarded();

  void write(const ForwardCall<Real>& job, const Normalisers& normalisers) const;

  // Writes the rows whose scores are too large for their results to be meaningful to `rows`, and
  // returns their number.
  std::int32_t lost_rows(const Request<Real>& request, const Normalisers& normalisers,
                         std::span<RowIndex> rows) const;

  const PanelRows<Real>& rows() const { return rows_; }

 private:
  void add_sinks(TensorView<const Real> sinks, Normalisers& normalisers) const;
  bool is_lost(const Request<Real>& request, const Normalisers& normalisers, std::int32_t r) const;
  void write_lse(const ForwardCall<Real>& job, std::int32_t r, double lse) const;
  void add_seen(std::span<const kernels::StoredTile> tiles, const kernels::StoredTile* next,
                const ScoreScratch<Real>& scratch);
  void start(Real* staged_rows);
  void add_alike(std::span<const kernels::BasicTile<Real>> tiles,
                 const ScoreScratch<Real>& scratch);
  void add_values(const kernels::BasicTile<Real>& tile, kernels::BasicPanel<Real> panel,
                  Real* weights);
  void begin_chunk();
  void end_chunks_before(std::int64_t key);
  void reset(const kernels::BasicPanelState<Real>& state) const;
  Real* out_of(const kernels::BasicPanelState<Real>& state, std::int32_t r) const;

  const Schedule<Real>& schedule_;
  PanelRows<Real> rows_;
  Real* staged_rows_ = nullptr;
  KeptPanel<Real> kept_;
  SeenKeys<Real> keys_;
  kernels::BasicPanelOptions<Real> options_;
  kernels::BasicPanelState<Real> first_state_;
  kernels::BasicPanelState<Real> second_state_;
  kernels::BasicPanelState<Real> part_;   // of the current chunk of keys
  kernels::BasicPanelState<Real> total_;  // of the chunks before
  std::int64_t chunk_ = -1;               // the chunk of the last tile
  bool has_part_ = false;
  bool has_total_ = false;
};

}}}  // namespace heed::v0::engine
