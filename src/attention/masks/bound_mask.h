// A mask bound to scores of one shape.
#pragma once

#include <string>

#include "attention/masks/all_of.h"
#include "attention/masks/mask_part.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 {

// A mask for one score tensor. The constructor checks that it fits.
class BoundMask {
 public:
  // Throws InvalidArgument when a part of the mask does not fit the shape.
  BoundMask(const Mask& mask, const ScoreShape& shape);

  // All parts together: see AllOf.
  RowRange range(const AttentionRow& row) const { return parts_.range(shape_, row); }
  void row_ranges(const detail::RowGroup& rows, RowRange* found) const {
    parts_.row_ranges(shape_, rows, found);
  }
  bool depends_on_head() const { return depends_on_head_; }
  bool visible(const detail::ScoreIndex& at) const { return parts_.visible(shape_, at); }
  // The sum that the additive parts add to the score of a visible key.
  float added(const detail::ScoreIndex& at) const { return parts_.added(at); }
  // True if every part is one interval of keys per row, so that range() describes the mask fully.
  bool is_structural() const { return is_structural_; }
  std::int64_t next_key(const detail::RowGroup& rows, std::int64_t key) const {
    return parts_.next_key(shape_, rows, key);
  }
  kernels::Visibility visibility(const detail::RowGroup& rows, RowRange keys) const {
    return parts_.visibility(shape_, rows, keys);
  }
  // Removes the keys that irregular parts hide from seen[r], for each row r.
  void hide(const detail::RowGroup& rows, RowRange keys, detail::KeyBits* seen) const {
    parts_.hide(shape_, rows, keys, seen);
  }
  std::int64_t query_step() const { return query_step_; }
  std::int64_t query_block() const { return parts_.query_block(); }
  std::int64_t query_step_of_tiles() const { return parts_.query_step_of_tiles(); }
  std::int64_t key_step(const detail::QueryStretch& queries, RowRange keys) const {
    return parts_.key_step(shape_, queries, keys);
  }

  // Sets seen[r] to the keys of one tile that row r sees, including keys that an additive part
  // hides.
  void see(const detail::RowGroup& rows, RowRange keys, detail::KeyBits* seen) const {
    parts_.see(shape_, rows, keys, seen);
  }
  detail::GroupRanges ranges(const detail::RowGroup& rows) const {
    return parts_.ranges(shape_, rows);
  }

  // True if some part calls a function of the user.
  bool calls_function() const { return parts_.calls_function(); }
  // True if some part adds to scores.
  bool adds() const { return adds_; }
  // Sets a tile to the sum that is added to scores, −infinity for keys that an additive part hides.
  template <class Real>
  void fill_added(const kernels::BasicScoreTile<Real>& tile,
                  const kernels::BasicScoreLoops<Real>& loops) const;

  std::string description() const { return parts_.description(); }

  const ScoreShape& shape() const noexcept { return shape_; }

 private:
  detail::AllOf parts_;
  ScoreShape shape_;
  bool is_structural_;
  bool depends_on_head_;
  bool adds_;
  std::int64_t query_step_;
};

}}  // namespace heed::v0
