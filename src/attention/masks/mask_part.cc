#include "attention/masks/mask_part.h"

#include <algorithm>

namespace heed { inline namespace v0 { namespace detail {

GroupRanges MaskPart::ranges(const ScoreShape& shape, const RowGroup& rows) const {
  GroupRanges found{{0, shape.kv_len}, {shape.kv_len, 0}};
  const std::int64_t offset = shape.query_offset[rows.batch];
  for (std::int32_t r = 0; r < rows.num_rows; ++r) {
    const RowRange keys = range(shape, {rows.batch, rows.heads[r], rows.q_idx[r] - offset});
    found.of_all = found.of_all & keys;
    if (keys.begin >= keys.end) continue;
    found.of_any.begin = std::min(found.of_any.begin, keys.begin);
    found.of_any.end = std::max(found.of_any.end, keys.end);
  }
  return found;
}

void MaskPart::narrow(const ScoreShape& shape, const RowGroup& rows, RowRange* seen) const {
  const std::int64_t offset = shape.query_offset[rows.batch];
  const bool per_head = depends_on_head();
  RowRange keys;
  for (std::int32_t r = 0; r < rows.num_rows; ++r) {
    if (r == 0 || per_head || rows.q_idx[r] != rows.q_idx[r - 1]) {
      keys = range(shape, {rows.batch, rows.heads[r], rows.q_idx[r] - offset});
    }
    seen[r] = seen[r] & keys;
  }
}

// Goes over the keys one by one. A structural part hides nothing beyond its ranges.
void MaskPart::hide(const ScoreShape& shape, const RowGroup& rows, RowRange keys,
                    KeyBits* seen) const {
  if (is_structural()) return;
  const std::int64_t first = tile_of(keys);
  const std::int64_t offset = shape.query_offset[rows.batch];
  for (std::int32_t r = 0; r < rows.num_rows; ++r) {
    KeyBits shown;
    for (std::int64_t k = keys.begin; k < keys.end; ++k) {
      if (visible(shape, {rows.batch, rows.heads[r], rows.q_idx[r] - offset, k})) {
        shown.set(k - first);
      }
    }
    seen[r] &= shown;
  }
}

}}}  // namespace heed::v0::detail
