// What a mask is made of, seen from inside the library.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "attention/kernels/kernels.h"
#include "attention/masks/key_bits.h"
#include "heed/attention/mask.h"
#include "heed/attention/statistics.h"

namespace heed { inline namespace v0 { namespace detail {

// A score by its indices: q counts from the first query of the call.
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

// Rows of one batch entry that are computed together, at least one and at most kMaxPanelWidth:
// query after query, of each the heads that share a key head, or some of these.
struct RowGroup {
  std::int32_t batch;
  std::int32_t num_rows;
  const std::int32_t* heads;  // [num_rows]
  const std::int32_t* q_idx;  // [num_rows], positions, which do not fall: query_offset is included
  // For the loops that call a user's function.
  TileTarget target = TileTarget::kBaseline;

  // From the first row's to the last one's.
  RowRange positions() const { return {q_idx[0], std::int64_t{q_idx[num_rows - 1]} + 1}; }
  // Some rows may be missing, so that the first two do not tell.
  bool has_one_head() const {
    return std::all_of(heads, heads + num_rows,
                       [this](std::int32_t head) { return head == heads[0]; });
  }
};

// Queries of one batch entry that follow each other, by their positions, which count query_offset.
struct QueryStretch {
  std::int64_t batch;
  RowRange positions;
};

// Keys that lie in the ranges of all rows of a group, and keys outside of which no row's range has
// any.
struct GroupRanges {
  RowRange of_all;
  RowRange of_any;
};

// One part of a mask. A structural part is one interval of keys per row and overrides range()
// alone. An irregular one overrides is_structural(), visible() and, to be fast, hide(); what it
// knows of whole tiles it says in visibility() and next_key(). One that adds to scores overrides
// adds(), added() and add(). Everything but check() may assume that check() passed for the same
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
  // Whether that is several masks joined by |, so that it needs parentheses beside others.
  virtual bool is_alternative() const { return false; }

  virtual RowRange range(const ScoreShape& shape, const AttentionRow& /*row*/) const {
    return {0, shape.kv_len};
  }
  // What range() says of all rows of a group: asked often, it is overridden where looking at each
  // row can be avoided. Ends may lie beyond the keys that there are.
  virtual GroupRanges ranges(const ScoreShape& shape, const RowGroup& rows) const;
  // Leaves of seen[r] what is in the range() of row r, for each row of the group.
  virtual void narrow(const ScoreShape& shape, const RowGroup& rows, RowRange* seen) const;
  // Whether range() differs between the heads of a query.
  virtual bool depends_on_head() const { return false; }
  virtual bool visible(const ScoreShape& /*shape*/, const ScoreIndex& /*at*/) const { return true; }
  virtual float added(const ScoreIndex& /*at*/) const { return 0; }
  // Whether that may be anything but 0.
  virtual bool adds() const { return false; }
  // Whether hide() and visible() call a function of the user's, which runs in calls alone, not
  // while they are planned.
  virtual bool calls_function() const { return false; }

  // How the part puts queries at keys, if it does; where what it is made of differs, one that is
  // not bottom_right().
  virtual const Alignment* alignment() const { return nullptr; }

  virtual bool is_structural() const { return true; }
  // The first key from `key` on in whose tile some row may see a key; kv_len or more where there is
  // none. `key` begins a tile. An irregular part that hides long stretches answers without looking
  // at each tile.
  virtual std::int64_t next_key(const ScoreShape& /*shape*/, const RowGroup& /*rows*/,
                                std::int64_t key) const {
    return key;
  }
  // What the part does to the scores of these rows and keys of one tile: hides all, leaves all
  // as they are, or anything else. kMixed is always a right answer.
  virtual kernels::Visibility visibility(const ScoreShape& /*shape*/, const RowGroup& /*rows*/,
                                         RowRange /*keys*/) const {
    return is_structural() ? kernels::Visibility::kAll : kernels::Visibility::kMixed;
  }
  // Queries that stand so many positions apart see alike: they are computed together.
  virtual std::int64_t query_step() const { return 1; }
  // The same of some tiles alone, those of which key_step() says so.
  virtual std::int64_t query_step_of_tiles() const { return query_step(); }
  // Those of these queries that see the same one of some neighbouring keys stand multiples of so
  // many positions apart: 1 where nothing is known.
  virtual std::int64_t key_step(const ScoreShape& /*shape*/, const QueryStretch& /*queries*/,
                                RowRange /*keys*/) const {
    return query_step();
  }
  // Whether some of these queries may see some of these keys: true is always a right answer.
  virtual bool may_show(const ScoreShape& /*shape*/, const QueryStretch& /*queries*/,
                        RowRange /*keys*/) const {
    return true;
  }
  // So many queries, from a multiple of it on, see alike: no others are computed with them.
  virtual std::int64_t query_block() const { return 1; }
  // Takes the keys that the part hides out of seen[r], for each row of the group; the bits are
  // those of a tile, of which only `keys` count and need exist.
  virtual void hide(const ScoreShape& shape, const RowGroup& rows, RowRange keys,
                    KeyBits* seen) const;
  // Adds what is to be added to scores to `tile`, −infinity for keys that are hidden: a part that
  // adds hides them so, not in hide().
  virtual void add(const ScoreShape& /*shape*/, const BasicScoreTile<float>& /*tile*/,
                   const kernels::BasicKernelTable<float>& /*table*/) const {}
  virtual void add(const ScoreShape& /*shape*/, const BasicScoreTile<double>& /*tile*/,
                   const kernels::BasicKernelTable<double>& /*table*/) const {}
};

class IrregularPart : public MaskPart {
 public:
  bool is_structural() const final { return false; }
};

// The first key of the tile that these keys are in.
inline std::int64_t tile_of(RowRange keys) {
  return keys.begin / kernels::kTileKeys * kernels::kTileKeys;
}

}}}  // namespace heed::v0::detail
