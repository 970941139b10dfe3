// The rows of one panel: their queries, the keys they see, and the terms and masks of their scores.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "attention/engine/row_block.h"
#include "attention/engine/schedule.h"
#include "attention/engine/tile_map.h"
#include "attention/kernels/decode/stored_tile.h"
#include "attention/kernels/integers/integers.h"
#include "attention/kernels/kernels.h"
#include "core/arena.h"

namespace heed { inline namespace v0 { namespace engine {

template <class Real>
class KeysTogether;

// Memory for the scores of one tile, which panels share.
template <class Real>
struct ScoreScratch {
  Real* scores = nullptr;  // [keys][panel_rows]
  Real* mask = nullptr;    // in whole vectors of rows, for irregular masks
  // Unless null, score() writes the derivatives of the scores with respect to scale · query · key
  // here.
  Real* derivatives = nullptr;
  Real* pairs = nullptr;                   // of the keys that an irregular mask leaves of a tile
  KeysTogether<Real>* together = nullptr;  // where several tiles are computed as one
};

template <class Real>
struct ScoreMemory {
  Piece<Real> scores;
  Piece<Real> mask;
  Piece<Real> derivatives;
  Piece<Real> pairs;

  ScoreMemory() = default;
  ScoreMemory(const Schedule<Real>& schedule, Layout& layout, bool with_derivatives = false);

  // The number of scores of one tile.
  static std::int64_t cells(const Schedule<Real>& schedule) {
    if (schedule.has_few_rows) {
      // Weights in pairs follow the weights.
      const std::int64_t keys = kernels::kTileKeys * (schedule.stages_pairs ? 3 : 2) / 2;
      return keys * schedule.panel_rows;
    }
    return cells_in_vectors(schedule);
  }
  // The number of scores in whole vectors of rows. Dropout is computed for eight keys at a time.
  static std::int64_t cells_in_vectors(const Schedule<Real>& schedule) {
    return (schedule.tile_keys() + 7) / 8 * 8 * schedule.whole_vectors();
  }
  ScoreScratch<Real> in(std::byte* memory) const {
    return {.scores = scores.in(memory),
            .mask = mask.in(memory),
            .derivatives = derivatives.in(memory),
            .pairs = pairs.in(memory),
            .together = nullptr};
  }
};

// Memory for a copy of a tile of keys and values, and for pairs of keys, where they are needed.
template <class Real>
struct StagingMemory {
  Piece<Real> key;
  Piece<Real> value;
  bool has_pairs = false;
  Piece<Real> pairs;

  StagingMemory() = default;
  StagingMemory(const Schedule<Real>& schedule, Layout& layout)
      : key(layout.add<Real>(schedule.copies_key() ? schedule.tile_keys() * schedule.head_dim : 0)),
        value(layout.add<Real>(schedule.copies_value() ? schedule.tile_keys() * schedule.value_dim
                                                       : 0)),
        has_pairs(schedule.stages_pairs),
        pairs(layout.add<Real>(schedule.tiles_together * schedule.pair_cells())) {}
  Staging<Real> in(std::byte* memory) const {
    return {key.in(memory), value.in(memory), has_pairs, pairs.in(memory)};
  }
};

template <class Real>
struct RowsMemory {
  Piece<Real> query;        // [head_dim][panel_rows], in pairs [⌈head_dim / 2⌉][panel_rows]
  Piece<std::byte> digits;  // of the queries, if keys are quantised
  Piece<TileRun> runs;

  RowsMemory() = default;
  RowsMemory(const Schedule<Real>& schedule, Layout& layout)
      : query(layout.add<Real>(schedule.packed_query_size())),
        digits(layout.add<std::byte>(
            schedule.has_quantised_keys()
                ? schedule.panel_rows *
                      kernels::QueryDigits::row_bytes(static_cast<std::int32_t>(schedule.head_dim))
                : 0)),
        runs(layout.add<TileRun>(std::max<std::int64_t>(
            1, TileMap::capacity(schedule.has_irregular_mask, schedule.kv_len)))) {}
};

template <class Real>
class SeenTile;

// Rows of one key head of one batch entry.
template <class Real>
class PanelRows {
 public:
  PanelRows(const Schedule<Real>& schedule, const RowsMemory<Real>& parts, std::byte* memory);

  // Sets the panel to the rows of a block, which are at most as many as a panel holds, or to the
  // given rows, which share a key head.
  void place(const Call<Real>& job, const RowBlock& block);
  void place(const Call<Real>& job, std::int64_t batch, std::span<const RowIndex> rows) {
    place(job, batch, rows, job.request->keys());
  }
  // As above with a range of the keys, which begins at a tile.
  void place(const Call<Real>& job, std::int64_t batch, std::span<const RowIndex> rows,
             RowRange keys);
  // Reads the queries, which scores need. `scratch` has room for the rows as numbers, if the
  // schedule widens the query.
  void pack(Real* scratch);
  bool is_packed() const { return is_packed_; }

  // The scores of a tile, [keys][width]; its range of keys is empty if no row sees any.
  kernels::BasicScoreTile<Real> score_tile(const auto& tile, Real* scores) const {
    return {.scores = scores,
            .width = width_,
            .num_rows = num_rows_,
            .first_key = tile.first_key,
            .begin = std::max(panel_.any_begin - tile.first_key, 0),
            .end = std::min(panel_.any_end - tile.first_key, tile.num_keys),
            .batch = static_cast<std::int32_t>(batch_),
            .heads = head_places_.data(),
            .q_idx = positions_.data(),
            .target = table_.tile_target,
            .query = packed_query_,
            .head_dim = panel_.head_dim};
  }
  // True if irregular parts of the mask may hide keys of a tile that the rows visit, or add to its
  // scores.
  bool has_mask(const auto& tile) const { return tiles_.has_mask(tile.first_key); }
  // Sets `seen` to the keys of a tile that each row sees.
  void see(const auto& tile, detail::RowBits& seen) const {
    const std::int64_t first = tile.first_key;
    const RowRange keys{std::max(panel_.any_begin, tile.first_key),
                        std::min(panel_.any_end, tile.first_key + tile.num_keys)};
    if (panel_.all_begin <= keys.begin && panel_.all_end >= keys.end) {
      std::fill_n(seen.begin(), num_rows_,
                  detail::KeyBits::between(keys.begin - first, keys.end - first));
    } else {
      for (std::int32_t r = 0; r < num_rows_; ++r) {
        seen[index(r)] = detail::KeyBits::between(
            begin_[index(r)] - first, std::min<std::int64_t>(end_[index(r)], keys.end) - first);
      }
    }
    request_->mask.hide(group(), keys, seen.data());
  }
  // True if only the mask depends on the positions of keys, so that keys may be left out of a tile.
  bool may_leave_out_keys() const {
    return request_->terms.empty() && dropout() == nullptr && !request_->mask.adds() &&
           !table_.multiplies_tiles();
  }
  // True if the remaining keys must form the same pairs as in the whole tile.
  bool keeps_pairs() const { return table_.keys_together == 2; }
  // Fills `mask`, [keys][width rounded up to whole vectors], with the numbers to add to the scores
  // of a tile, −infinity for hidden keys. Returns kAll, without writing, if all of them are 0.
  kernels::Visibility fill_mask(const kernels::StoredTile& tile, Real* mask) const;
  // Computes the scores of a tile that the rows visit in natural units, after all terms and the
  // mask. Returns false, with nothing computed, if no row sees any of its keys.
  bool score(const SeenTile<Real>& seen, const ScoreScratch<Real>& scratch) const;

  // Adds the vectors that terms add to values to the output, [value_dim][width], with the weights
  // that absorb() left; then sets the weights of keys that a row does not see to 0.
  void add_to_out(const kernels::BasicTile<Real>& tile, Real* weights, Real* out) const;

  // True if scores are kept between the two products. The query is then multiplied by scale,
  // otherwise by scale · log2 e.
  bool keeps_scores() const { return keeps_scores_; }
  // The panel in the form that kernels take.
  const kernels::BasicPanel<Real>& panel() const { return panel_; }
  // Null if no weight is dropped.
  const kernels::BasicDropoutRows<Real>* dropout() const {
    return request_->dropout.keeps_everything() ? nullptr : &dropout_;
  }
  const TileMap& tiles() const { return tiles_; }
  bool sees(const auto& tile) const { return tiles_.visits(tile.first_key); }
  // Sets the offsets of a state, in whole vectors, to those of rows that have seen no key.
  void reset_offsets(const kernels::BasicPanelState<Real>& state) const;
  // True if row r may see a key.
  bool sees_any(std::int32_t r) const { return begin_[index(r)] < end_[index(r)]; }

  std::int32_t num_rows() const { return num_rows_; }
  std::int32_t width() const { return width_; }
  std::int32_t lanes() const { return table_.lanes; }
  // `rows` rounded up to whole vectors; the number of lanes is a power of two.
  std::int32_t whole_vectors(std::int32_t rows) const {
    return (rows + table_.lanes - 1) & -table_.lanes;
  }
  std::int64_t batch() const { return batch_; }
  std::int64_t head(std::int32_t r) const { return heads_[index(r)]; }
  std::int64_t query(std::int32_t r) const { return queries_[index(r)]; }
  RowIndex row(std::int32_t r) const { return {heads_[index(r)], queries_[index(r)]}; }
  // The place of the row's head and its position, as masks, terms and sinks use them.
  std::int32_t head_place(std::int32_t r) const { return head_places_[index(r)]; }
  std::int32_t position(std::int32_t r) const { return positions_[index(r)]; }

 private:
  static std::size_t index(std::int32_t r) { return static_cast<std::size_t>(r); }
  detail::RowGroup group() const {
    return {static_cast<std::int32_t>(batch_), num_rows_, head_places_.data(), positions_.data(),
            table_.tile_target};
  }

  void resize(const Call<Real>& job, std::int64_t batch, std::int64_t num_rows);
  void place_row(std::int32_t r, std::int64_t head, std::int64_t query);
  void finish(RowRange keys);
  Real factor() const;
  void find_ranges();
  void find_vector_ranges();
  void apply_terms(const kernels::BasicScoreTile<Real>& tile) const;

  using PerRow = std::array<std::int32_t, kernels::kMaxPanelWidth>;

  const kernels::BasicKernelTable<Real>& table_;
  bool has_few_rows_;
  bool always_keeps_scores_;
  KvStorage key_storage_;
  const Request<Real>* request_ = nullptr;
  Rows query_;
  bool is_packed_ = false;
  Real* packed_query_;
  std::byte* digits_;  // null if keys are not quantised
  bool keeps_scores_ = false;
  kernels::BasicPanel<Real> panel_;
  TileMap tiles_;
  kernels::BasicDropoutRows<Real> dropout_;
  std::int64_t batch_ = 0;
  std::int32_t num_rows_ = 0;
  std::int32_t width_ = 0;
  PerRow heads_;  // indices within the call, like those of queries
  PerRow queries_;
  PerRow head_places_;  // among all heads of the problem
  PerRow positions_;    // among all queries of the problem, with query_offset
  PerRow begin_;
  PerRow end_;
};

// A row of a tensor as numbers: in place, or converted to `scratch` if it is of another type.
template <class Real>
const Real* read_row(const kernels::BasicKernelTable<Real>& table, const Rows& rows,
                     std::int64_t batch, const RowIndex& at, std::int64_t dim, Real* scratch) {
  const std::byte* row = rows.row(batch, at.head, at.query);
  if (rows.type == data_type_of<Real>()) return reinterpret_cast<const Real*>(row);
  table.widen(rows.type, row, dim, scratch);
  return scratch;
}

// Writes numbers to a row of the output, which is of another type, and their rounding errors to
// out_low.
template <class Real>
void write_narrow_row(const kernels::BasicKernelTable<Real>& table, const ForwardCall<Real>& job,
                      std::int64_t batch, const RowIndex& at, const Real* numbers) {
  const std::int64_t dim = job.request->value_dim();
  table.narrow(job.out.type, numbers, dim, job.out.row(batch, at.head, at.query));
  if (job.out_low.data == nullptr) return;
  table.narrow_rest(job.out.type, numbers, dim, job.out_low.row(batch, at.head, at.query));
}

}}}  // namespace heed::v0::engine
