// The attention of one panel's rows over the keys seen so far.
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
  // Each piece is of whole vectors, as all pieces are.
  StateMemory(const Schedule<Real>& schedule, Layout& layout)
      : minus_m(layout.add<Real>(schedule.panel_rows)),
        threshold(layout.add<Real>(schedule.panel_rows)),
        sum(layout.add<Real>(schedule.panel_rows)),
        out(layout.add<Real>(schedule.out_size())) {}

  kernels::BasicPanelState<Real> in(std::byte* memory) const {
    return {minus_m.in(memory), threshold.in(memory), sum.in(memory), out.in(memory)};
  }
};

// The state of a panel over one chunk of keys, kept until all are there.
template <class Real>
struct SavedChunk {
  bool* is_seen = nullptr;  // whether some row saw a key; if not, the state means nothing
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
  // The first chunk's state becomes the total, so that one chunk needs one.
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

// Tiles come in the order of keys.
template <class Real>
class RunningSoftmax {
 public:
  RunningSoftmax(const Schedule<Real>& schedule, const SoftmaxMemory<Real>& parts,
                 std::byte* memory);

  // Prepares for the rows of a block, with nothing seen yet: their queries are packed with the
  // first tile. `staged_rows` is memory for a panel's rows, [panel_rows][head_dim or value_dim],
  // where tensors are of another type.
  void start(const ForwardCall<Real>& job, const RowBlock& block, Real* staged_rows);

  // The same for some rows of a batch entry that share a key head, and one tile of keys.
  void start(const ForwardCall<Real>& job, std::int64_t batch, std::span<const RowIndex> rows,
             RowRange keys, Real* staged_rows);

  // How many of these tiles, of which the rows visit the first, are added together.
  std::int32_t tiles_together(std::span<const kernels::BasicTile<Real>> tiles) {
    return options_.guarded ? 1 : tiles_alike(tiles, rows_, keys_);
  }
  // Adds so many tiles of keys.
  void add(std::span<const kernels::BasicTile<Real>> tiles, const ScoreScratch<Real>& scratch);
  // The same of one, which the rows visit.
  void add(const kernels::BasicTile<Real>& tile, const ScoreScratch<Real>& scratch);
  // The same for few rows: tiles of a chunk as they are stored, and the one that will follow or
  // null.
  void add(std::span<const kernels::StoredTile> tiles, const kernels::StoredTile* next,
           const ScoreScratch<Real>& scratch);

  // Puts what was seen since the last chunk of keys ended into the total. After the last tile.
  void end_chunk();

  // Uses this memory for the chunk that comes, or takes over what is in it already.
  void compute_in(const SavedChunk<Real>& chunk) { part_ = chunk.state; }
  void take_over(const SavedChunk<Real>& chunk);
  bool has_seen_chunk() const { return has_part_; }

  // Before rows of some panels go on in others: ends the chunks of keys before the one that this
  // key is in, and forgets what the other panels have summed.
  static void begin_moved(std::span<RunningSoftmax> from, std::span<RunningSoftmax> to,
                          std::int64_t key);
  // Goes on with the chunk of keys that this one is in.
  void enter_chunk_of(std::int64_t key);
  // After either of these, for both panels: row r goes on with what a row of another panel has
  // summed.
  void take_row(std::int32_t r, const RunningSoftmax& from, std::int32_t from_r);

  // Begins with what the rows summed over earlier keys; leaves there what they have summed since.
  void resume(const RowStates<Real>& states);
  void leave(const RowStates<Real>& states);

  // What turns the output of each row into its result, and the denominator of its softmax:
  // sum · exp(m · unit).
  struct Normalisers {
    using PerRow = std::array<Real, kernels::kMaxPanelWidth>;

    alignas(64) PerRow factor;
    PerRow m;
    PerRow sum;
    double unit;  // the natural logarithm of what m counts: 2

    double lse(std::int32_t r) const;
  };
  Normalisers normalisers(const Request<Real>& request) const;

  // Whether every row's result is a finite number.
  bool is_finite() const;
  // Starts again, multiplying only by values that are seen.
  void restart_guarded();

  void write(const ForwardCall<Real>& job, const Normalisers& normalisers) const;

  // Puts the rows whose results say too little, because their scores are too large, into `rows` and
  // returns how many these are.
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
  std::int64_t chunk_ = -1;               // the one that tiles came from last
  bool has_part_ = false;
  bool has_total_ = false;
};

}}}  // namespace heed::v0::engine
