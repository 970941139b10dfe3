// The conjunction of the parts of a mask: a key is visible if all parts show it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attention/masks/mask_part.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 { namespace detail {

// A value type; copies share the parts. All functions but check() require that check() has passed
// for the same shape.
class AllOf {
 public:
  explicit AllOf(const Mask& mask) : parts_(mask.parts().begin(), mask.parts().end()) {}

  void check(const ScoreShape& shape) const;
  // The parts' descriptions joined by " & ", alternatives in parentheses; "none" without parts.
  std::string description() const;
  std::size_t size() const noexcept { return parts_.size(); }

  // The alignment of the parts; where parts have different ones, one that is not bottom_right().
  const Alignment* alignment() const;
  bool is_structural() const;
  bool depends_on_head() const;
  bool adds() const;
  bool calls_function() const;

  // The range outside of which no key is visible; within it, irregular parts may hide keys. It lies
  // within [0, kv_len] and is [0, 0) when it is empty.
  RowRange range(const ScoreShape& shape, const AttentionRow& row) const;
  // range() of each row of a group.
  void row_ranges(const ScoreShape& shape, const RowGroup& rows, RowRange* found) const;
  // See MaskPart; the ranges lie within [0, kv_len].
  GroupRanges ranges(const ScoreShape& shape, const RowGroup& rows) const;
  bool visible(const ScoreShape& shape, const ScoreIndex& at) const;
  float added(const ScoreIndex& at) const;

  // The next three combine the answers of the irregular parts: see MaskPart.
  std::int64_t next_key(const ScoreShape& shape, const RowGroup& rows, std::int64_t key) const;
  kernels::Visibility visibility(const ScoreShape& shape, const RowGroup& rows,
                                 RowRange keys) const;
  // The answer of the first part whose answer is more than 1, or 1.
  std::int64_t query_step() const;
  // As query_step(), for some tiles.
  std::int64_t query_step_of_tiles() const;
  std::int64_t key_step(const ScoreShape& shape, const QueryStretch& queries, RowRange keys) const;
  bool may_show(const ScoreShape& shape, const QueryStretch& queries, RowRange keys) const;
  // The answer of the first part whose answer is more than 1, or 1.
  std::int64_t query_block() const;
  // Removes the keys that irregular parts hide from seen[r], for each row r.
  void hide(const ScoreShape& shape, const RowGroup& rows, RowRange keys, KeyBits* seen) const {
    for (const auto& part : parts_) part->hide(shape, rows, keys, seen);
  }
  // Sets seen[r] to the keys that row r sees among `keys`, which are keys of one tile.
  void see(const ScoreShape& shape, const RowGroup& rows, RowRange keys, KeyBits* seen) const;
  // Adds the additive parts to a tile of scores.
  template <class Real>
  void add(const ScoreShape& shape, const BasicScoreTile<Real>& tile,
           const kernels::BasicScoreLoops<Real>& loops) const {
    for (const auto& part : parts_) part->add(shape, tile, loops);
  }

 private:
  // The answer of the first part whose answer is more than 1, or 1.
  template <class Ask>
  std::int64_t first_above_one(const Ask& ask) const;

  std::vector<std::shared_ptr<const MaskPart>> parts_;
};

}}}  // namespace heed::v0::detail
