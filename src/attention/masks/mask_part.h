// What a mask is made of, seen from inside the library.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "attention/kernels/kernels.h"
#include "heed/mask.h"
#include "heed/statistics.h"

namespace heed::inline v0::detail {

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

// Rows of one batch entry that are computed together.
struct RowGroup {
  std::int32_t batch;
  std::int32_t num_rows;
  const std::int32_t* heads;  // [num_rows]
  const std::int32_t* q_idx;  // [num_rows], positions: query_offset is included
};

// Keys of a tile that stand `step` apart, counted from its first key: first, first + step, … below
// the tile's end. All of them to begin with.
struct KeySteps {
  std::int32_t first = 0;
  std::int32_t step = 1;
  std::int32_t count = kernels::kTileKeys;

  bool are_all() const { return count == kernels::kTileKeys; }
  // How many of them come before the tile's key `end`.
  std::int32_t before(std::int32_t end) const {
    return end <= first ? 0 : std::min((end - first - 1) / step + 1, count);
  }
  friend bool operator==(const KeySteps&, const KeySteps&) = default;
};

class AllOf;

// What some rows see of a tile, as far as a range for each row and steps can say it.
struct SeenKeys {
  KeySteps steps = {};
  // Of alternatives the one that alone shows keys of the tile, whose ranges hold as well; or null.
  const AllOf* alone = nullptr;

  friend bool operator==(const SeenKeys&, const SeenKeys&) = default;
};

// One part of a mask. A structural part is one interval of keys per row and overrides range()
// alone. An irregular one is an IrregularPart: it overrides visible() and, if it adds to scores,
// added(); what it knows of whole tiles it says in visibility() and next_key(). Everything but
// check() may assume that check() passed for the same shape.
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
  // Whether range() differs between the heads of a query.
  virtual bool depends_on_head() const { return false; }
  virtual bool visible(const ScoreShape& /*shape*/, const ScoreIndex& /*at*/) const { return true; }
  virtual float added(const ScoreIndex& /*at*/) const { return 0; }
  // Whether that may be anything but 0.
  virtual bool adds() const { return false; }

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
  // What the part does to the scores of these rows and keys, at most a tile: hides all, leaves all
  // as they are, or anything else. kMixed is always a right answer.
  virtual kernels::Visibility visibility(const ScoreShape& /*shape*/, const RowGroup& /*rows*/,
                                         RowRange /*keys*/) const {
    return is_structural() ? kernels::Visibility::kAll : kernels::Visibility::kMixed;
  }
  // What the rows see of a tile, if it can be said so: the same keys for all rows, what ranges hide
  // apart. `keys` is as above. Nothing is always a right answer.
  virtual std::optional<SeenKeys> seen_keys(const ScoreShape& /*shape*/, const RowGroup& /*rows*/,
                                            RowRange /*keys*/) const {
    return std::nullopt;
  }
  // Queries that stand so many positions apart see alike: they are computed together.
  virtual std::int64_t query_step() const { return 1; }
  // Adds what is to be added to scores to `tile`, and makes what it hides −infinity there.
  virtual void hide(const ScoreShape& /*shape*/, const BasicScoreTile<float>& /*tile*/,
                    const kernels::BasicKernelTable<float>& /*table*/) const {}
  virtual void hide(const ScoreShape& /*shape*/, const BasicScoreTile<double>& /*tile*/,
                    const kernels::BasicKernelTable<double>& /*table*/) const {}
};

// An irregular part whose tiles are written once for both types of scores, by
// Part::hide_in(shape, tile, table).
template <class Part>
class IrregularPart : public MaskPart {
 public:
  bool is_structural() const final { return false; }
  void hide(const ScoreShape& shape, const BasicScoreTile<float>& tile,
            const kernels::BasicKernelTable<float>& table) const final {
    static_cast<const Part&>(*this).hide_in(shape, tile, table);
  }
  void hide(const ScoreShape& shape, const BasicScoreTile<double>& tile,
            const kernels::BasicKernelTable<double>& table) const final {
    static_cast<const Part&>(*this).hide_in(shape, tile, table);
  }
};

}  // namespace heed::inline v0::detail
