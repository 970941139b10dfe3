// Masks that depend on the position of a query among the keys.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attention/masks/mask_part.h"

namespace heed { inline namespace v0 { namespace detail {

// The largest offset. Larger ones are refused, so that sums of offsets do not overflow.
inline constexpr std::int64_t kMaxOffset = std::int64_t{1} << 32;

// Sides and lengths are cut off at this number, which exceeds every distance between two positions.
inline constexpr std::int64_t kFar = 4 * kMaxOffset;

// The block of a position, which may be negative: ⌊position / block⌋.
constexpr std::int64_t block_of(std::int64_t position, std::int64_t block) {
  return position >= 0 ? position / block : -((-position + block - 1) / block);
}

// The number as text, or "unbounded".
std::string side_text(std::int64_t keys);

// Throws InvalidArgument unless least ≤ number ≤ most.
void check_number(const char* function, const char* name, std::int64_t number, std::int64_t least,
                  std::int64_t most = kMaxOffset);

// Throws InvalidArgument unless there is one length for each sequence of the batch, 0 to kv_len.
void check_key_lengths(std::string_view mask_name, const std::vector<std::int64_t>& lengths,
                       const ScoreShape& shape);

class Aligned : public MaskPart {
 public:
  Aligned(const char* name, std::string arguments, Alignment alignment)
      : name_(name), arguments_(std::move(arguments)), alignment_(std::move(alignment)) {}
  void check(const ScoreShape& shape) const override { alignment_.check(name_, shape); }
  std::string description() const override {
    const std::string aligned = alignment_.description();
    if (arguments_.empty() && aligned.empty()) return name_;
    const char* between = arguments_.empty() || aligned.empty() ? "" : ", ";
    return fmt::format("{}({}{}{})", name_, arguments_, between, aligned);
  }
  const Alignment* alignment() const override { return &alignment_; }
  RowRange range(const ScoreShape& shape, const AttentionRow& row) const override {
    return range_at(row.query + alignment_.resolve(shape, row.batch));
  }
  GroupRanges ranges(const ScoreShape& shape, const RowGroup& rows) const final {
    const RowRange positions = rows.positions();
    const std::int64_t moved = moved_by(shape, rows.batch);
    const RowRange of_first = range_at(positions.begin + moved);
    const RowRange of_last = range_at(positions.end - 1 + moved);
    return {{of_last.begin, of_first.end}, {of_first.begin, of_last.end}};
  }
  bool may_show(const ScoreShape& shape, const QueryStretch& queries, RowRange keys) const final {
    const std::int64_t moved = moved_by(shape, queries.batch);
    return keys.begin < range_at(queries.positions.end - 1 + moved).end &&
           keys.end > range_at(queries.positions.begin + moved).begin;
  }
  void narrow(const ScoreShape& shape, const RowGroup& rows, RowRange* seen) const final {
    const std::int64_t moved = moved_by(shape, rows.batch);
    for (std::int32_t r = 0; r < rows.num_rows; ++r) {
      seen[r] = seen[r] & range_at(rows.q_idx[r] + moved);
    }
  }

 private:
  // The shift from a query's position in the call, query_offset included, to its position among the
  // keys.
  std::int64_t moved_by(const ScoreShape& shape, std::int64_t batch) const {
    return alignment_.resolve(shape, batch) - shape.query_offset[batch];
  }
  // The range of keys of a query at `position` among the keys. Both ends rise with `position` or
  // stay; they may lie outside the keys.
  virtual RowRange range_at(std::int64_t position) const = 0;

  std::string name_;
  std::string arguments_;
  Alignment alignment_;
};

}}}  // namespace heed::v0::detail
