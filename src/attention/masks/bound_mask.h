// A mask that has met the scores it applies to.
#pragma once

#include <string>

#include "attention/masks/mask_part.h"
#include "heed/mask.h"

namespace heed::inline v0 {

// The answers of a mask for one score tensor. Construction checks that the mask fits.
class BoundMask {
 public:
  // Throws InvalidArgument when a part of the mask does not fit the shape.
  BoundMask(const Mask& mask, const ScoreShape& shape);

  // Keys outside this range are not visible; those inside may be hidden by an irregular part.
  // Within [0, kv_len]; [0, 0) when there is none.
  RowRange range(const AttentionRow& row) const;
  // Whether range() differs between the heads of a query.
  bool depends_on_head() const { return depends_on_head_; }

  bool visible(const detail::ScoreIndex& at) const;

  // What the additive parts add to the score of a visible key.
  float added(const detail::ScoreIndex& at) const;

  // Whether every part is one interval of keys per row, so that range() says it all.
  bool is_structural() const { return is_structural_; }

  // What the irregular parts say of whole tiles: see MaskPart.
  std::int64_t next_key(const detail::RowGroup& rows, std::int64_t key) const;
  kernels::Visibility visibility(const detail::RowGroup& rows, RowRange keys) const;

  // Fills a tile with what the irregular parts add to scores: −infinity for hidden keys.
  template <class Real>
  void fill(const kernels::BasicScoreTile<Real>& tile,
            const kernels::BasicKernelTable<Real>& table) const;

  std::string description() const { return mask_.description(); }

  const ScoreShape& shape() const noexcept { return shape_; }

 private:
  Mask mask_;
  ScoreShape shape_;
  bool is_structural_;
  bool depends_on_head_;
};

}  // namespace heed::inline v0
