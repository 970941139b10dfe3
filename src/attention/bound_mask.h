// A mask that has met the scores it applies to.
#pragma once

#include <string>

#include "attention/mask_part.h"
#include "heed/mask.h"

namespace heed::inline v0 {

// The answers of a mask for one score tensor. Construction checks that the mask fits.
class BoundMask {
 public:
  // Throws InvalidArgument when a part of the mask does not fit the shape.
  BoundMask(const Mask& mask, const ScoreShape& shape);

  // Keys outside this range are not visible; those inside may be hidden by an irregular part.
  // Within [0, kv_len]; [0, 0) when there is none.
  RowRange range(std::int64_t batch, std::int64_t q) const;

  bool visible(const detail::Cell& cell) const;

  // What the additive parts add to the score of a visible cell.
  float added(const detail::Cell& cell) const;

  // Whether every part is one interval of keys per query, so that range() says it all.
  bool is_structural() const;

  // Fills a tile with what the other parts add to scores: −infinity for hidden keys.
  void fill(const detail::ScoreTile& tile, const kernels::KernelTable& table) const;

  std::string description() const { return mask_.description(); }

  const ScoreShape& shape() const noexcept { return shape_; }

 private:
  Mask mask_;
  ScoreShape shape_;
};

}  // namespace heed::inline v0
