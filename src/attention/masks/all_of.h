// Parts of a mask that must all show a key: what they answer together.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "attention/masks/mask_part.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 { namespace detail {

// A value; copies share the parts. Everything but check() may assume that check() passed for the
// same shape.
class AllOf {
 public:
  explicit AllOf(const Mask& mask) : parts_(mask.parts().begin(), mask.parts().end()) {}

  void check(const ScoreShape& shape) const;
  // Joined by " & ", with alternatives in parentheses; "none" without parts.
  std::string description() const;
  std::size_t size() const noexcept { return parts_.size(); }

  // How the parts put queries at keys; where they differ, one that is not bottom_right().
  const Alignment* alignment() const;
  bool is_structural() const;
  bool depends_on_head() const;
  bool adds() const;
  bool calls_function() const;

  // Keys outside this range are not visible; those inside may be hidden by an irregular part.
  // Within [0, kv_len]; [0, 0) when there is none.
  RowRange range(const ScoreShape& shape, const AttentionRow& row) const;
  // The same for each row of a group.
  void row_ranges(const ScoreShape& shape, const RowGroup& rows, RowRange* found) const;
  // See MaskPart; within [0, kv_len].
  GroupRanges ranges(const ScoreShape& shape, const RowGroup& rows) const;
  bool visible(const ScoreShape& shape, const ScoreIndex& at) const;
  float added(const ScoreIndex& at) const;

  // What the irregular parts say of whole tiles: see MaskPart.
  std::int64_t next_key(const ScoreShape& shape, const RowGroup& rows, std::int64_t key) const;
  kernels::Visibility visibility(const ScoreShape& shape, const RowGroup& rows,
                                 RowRange keys) const;
  // That of the first part that has one; 1 otherwise.
  std::int64_t query_step() const;
  // The same.
  std::int64_t query_step_of_tiles() const;
  std::int64_t key_step(const ScoreShape& shape, const QueryStretch& queries, RowRange keys) const;
  bool may_show(const ScoreShape& shape, const QueryStretch& queries, RowRange keys) const;
  // The same.
  std::int64_t query_block() const;
  // Takes what irregular parts hide out of seen[r].
  void hide(const ScoreShape& shape, const RowGroup& rows, RowRange keys, KeyBits* seen) const {
    for (const auto& part : parts_) part->hide(shape, rows, keys, seen);
  }
  // Makes seen[r] the keys of a tile that row r sees, those of its range alone; of these only
  // `keys` count.
  void see(const ScoreShape& shape, const RowGroup& rows, RowRange keys, KeyBits* seen) const;
  // Adds what they add to scores to a tile.
  template <class Real>
  void add(const ScoreShape& shape, const BasicScoreTile<Real>& tile,
           const kernels::BasicKernelTable<Real>& table) const {
    for (const auto& part : parts_) part->add(shape, tile, table);
  }

 private:
  // The first part's answer that is more than 1; 1 otherwise.
  template <class Ask>
  std::int64_t first_above_one(const Ask& ask) const;

  std::vector<std::shared_ptr<const MaskPart>> parts_;
};

}}}  // namespace heed::v0::detail
