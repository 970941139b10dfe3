// The parts that masks consist of.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "attention/kernels/score_loops.h"
#include "attention/masks/key_bits.h"
#include "heed/attention/mask.h"
#include "heed/attention/statistics.h"

namespace heed { inline namespace v0 { namespace detail {

// The indices of a score; q counts from the first query of the call.
struct ScoreIndex {
  std::int64_t batch;
  std::int64_t head;
  std::int64_t q;
  std::int64_t k;
};

inline ScorePosition position(const ScoreShape& shape, const ScoreIndex& at) {
  return {static_cast<std::int32_t>(at.batch), static_cast<std::int32_t>(at.head),
          static_cast<std::int32_t>(at.q + shape.query_offset[at.batch]),
          static_cast<std::int32_t>(at.k)};
}

// Rows of one batch entry that are computed together, from 1 to kMaxPanelWidth. They are sorted by
// query, with some or all of the heads that share a key head for each; or, for statistics, by head,
// where positions fall from the last query of a head to the first of the next.
struct RowGroup {
  std::int32_t batch;
  std::int32_t num_rows;
  const std::int32_t* heads;  // [num_rows]
  const std::int32_t* q_idx;  // [num_rows], positions with query_offset included
  // The instruction set for loops that call a user's function.
  TileTarget target = TileTarget::kBaseline;

  // The positions from the least of a row to the greatest.
  RowRange positions() const {
    const auto [least, greatest] = std::minmax_element(q_idx, q_idx + num_rows);
    return {*least, std::int64_t{*greatest} + 1};
  }
  // True if all rows are of one head. All are compared, as some rows of a query may be missing.
  bool has_one_head() const {
    return std::all_of(heads, heads + num_rows,
                       [this](std::int32_t head) { return head == heads[0]; });
  }
};

// Consecutive queries of one batch entry, by their positions, query_offset included.
struct QueryStretch {
  std::int64_t batch;
  RowRange positions;
};

// Two ranges for a group of rows: keys that lie in the range of every row, and keys outside of
// which no row has any.
struct GroupRanges {
  RowRange of_all;
  RowRange of_any;
};

// One part of a mask. A structural part is one interval of keys per row and overrides range()
// alone. An irregular part overrides is_structural(), visible() and, to be fast, hide(),
// visibility() and next_key(), which answer for whole tiles. A part that adds to scores overrides
// adds(), added() and add(). All functions but check() require that check() has passed for the same
// shape.
class MaskPart {
 public:
  MaskPart() = default;
  MaskPart(const MaskPart&) = delete;
  MaskPart& operator=(const MaskPart&) = delete;
  virtual ~MaskPart() = default;

  // Throws InvalidArgument when the part does not fit the shape.
  virtual void check(const ScoreShape& shape) const = 0;
  virtual std::string description() const = 0;
  // True if the description is several masks joined by |, which need parentheses beside others.
  virtual bool is_alternative() const { return false; }

  virtual RowRange range(const ScoreShape& shape, const AttentionRow& /*row*/) const {
    return {0, shape.kv_len};
  }
  // The range() of all rows of a group together. It is called often: parts that need not look at
  // each row override it. Ends may lie outside the keys.
  virtual GroupRanges ranges(const ScoreShape& shape, const RowGroup& rows) const;
  // Cuts seen[r] to the range() of row r, for each row of the group.
  virtual void narrow(const ScoreShape& shape, const RowGroup& rows, RowRange* seen) const;
  // True if range() differs between the heads of a query.
  virtual bool depends_on_head() const { return false; }
  virtual bool visible(const ScoreShape& /*shape*/, const ScoreIndex& /*at*/) const { return true; }
  virtual float added(const ScoreIndex& /*at*/) const { return 0; }
  // True if added() may be anything but 0.
  virtual bool adds() const { return false; }
  // True if hide() and visible() call a function of the user. Such functions run in calls only, not
  // while a call is planned.
  virtual bool calls_function() const { return false; }

  // The alignment of the part, or null if it has none. A part made of several with different
  // alignments gives one that is not bottom_right().
  virtual const Alignment* alignment() const { return nullptr; }

  virtual bool is_structural() const { return true; }
  // The first key ≥ `key` whose tile may have a key visible to some row, or a number ≥ kv_len if
  // there is none. `key` is the first of a tile. An irregular part that hides long ranges overrides
  // this, so that not every tile has to be looked at.
  virtual std::int64_t next_key(const ScoreShape& /*shape*/, const RowGroup& /*rows*/,
                                std::int64_t key) const {
    return key;
  }
  // The effect of the part on the scores of these rows and keys of one tile: kNone hides all, kAll
  // changes none, kMixed is anything else and always a correct answer.
  virtual kernels::Visibility visibility(const ScoreShape& /*shape*/, const RowGroup& /*rows*/,
                                         RowRange /*keys*/) const {
    return is_structural() ? kernels::Visibility::kAll : kernels::Visibility::kMixed;
  }
  // The step between queries that see similar keys: they are computed together.
  virtual std::int64_t query_step() const { return 1; }
  // Such a step for some of the tiles only, those for which key_step() gives it.
  virtual std::int64_t query_step_of_tiles() const { return query_step(); }
  // A step such that the positions of any two of these queries that see the same one of `keys`,
  // which are neighbours, differ by a multiple of it; 1 if nothing is known.
  virtual std::int64_t key_step(const ScoreShape& /*shape*/, const QueryStretch& /*queries*/,
                                RowRange /*keys*/) const {
    return query_step();
  }
  // True if some of these queries may see some of these keys; true is always a correct answer.
  virtual bool may_show(const ScoreShape& /*shape*/, const QueryStretch& /*queries*/,
                        RowRange /*keys*/) const {
    return true;
  }
  // The size of the blocks of queries that see similar keys. Block i begins at query i ·
  // query_block(), and no queries of other blocks are computed with it.
  virtual std::int64_t query_block() const { return 1; }
  // Removes the keys that the part hides from seen[r], for each row of the group. Bits are those of
  // a tile; only `keys` of it count and need exist.
  virtual void hide(const ScoreShape& shape, const RowGroup& rows, RowRange keys,
                    KeyBits* seen) const;
  // Adds the part's numbers to `tile`, −infinity for hidden keys: a part that adds hides keys here
  // and not in hide().
  virtual void add(const ScoreShape& /*shape*/, const BasicScoreTile<float>& /*tile*/,
                   const kernels::BasicScoreLoops<float>& /*loops*/) const {}
  virtual void add(const ScoreShape& /*shape*/, const BasicScoreTile<double>& /*tile*/,
                   const kernels::BasicScoreLoops<double>& /*loops*/) const {}
};

class IrregularPart : public MaskPart {
 public:
  bool is_structural() const final { return false; }
};

// The first key of the tile that has these keys.
inline std::int64_t tile_of(RowRange keys) {
  return keys.begin / kernels::kTileKeys * kernels::kTileKeys;
}

}}}  // namespace heed::v0::detail
