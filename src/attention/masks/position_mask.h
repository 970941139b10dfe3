// Masks given by a rule for a key and a query's position among the keys.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

#include "attention/masks/mask_part.h"

namespace heed { inline namespace v0 { namespace detail {

// The rule is Part::sees(position, key), and for the keys of a tile Part::seen(position,
// first_key). Part::of_ranges(positions, keys) is its visibility() and Part::next(positions, key)
// its next_key(), for `positions` from the least of a row to the greatest.
template <class Part>
class PositionMask : public IrregularPart {
 public:
  PositionMask(const char* name, std::string arguments, Alignment alignment)
      : name_(name), arguments_(std::move(arguments)), alignment_(std::move(alignment)) {}

  void check(const ScoreShape& shape) const override { alignment_.check(name_, shape); }
  std::string description() const override {
    const std::string aligned = alignment_.description();
    const bool has_both = !arguments_.empty() && !aligned.empty();
    const std::string all = fmt::format("{}{}{}", arguments_, has_both ? ", " : "", aligned);
    return all.empty() ? name_ : fmt::format("{}({})", name_, all);
  }
  const Alignment* alignment() const override { return &alignment_; }
  bool visible(const ScoreShape& shape, const ScoreIndex& at) const final {
    return part().sees(at.q + alignment_.resolve(shape, at.batch), at.k);
  }
  std::int64_t next_key(const ScoreShape& shape, const RowGroup& rows,
                        std::int64_t key) const final {
    return part().next(positions(shape, rows), key);
  }
  kernels::Visibility visibility(const ScoreShape& shape, const RowGroup& rows,
                                 RowRange keys) const final {
    return part().of_ranges(positions(shape, rows), keys);
  }
  bool may_show(const ScoreShape& shape, const QueryStretch& queries, RowRange keys) const final {
    const std::int64_t moved = shift(shape, queries.batch);
    return part().of_ranges({queries.positions.begin + moved, queries.positions.end + moved},
                            keys) != kernels::Visibility::kNone;
  }
  GroupRanges ranges(const ScoreShape& shape, const RowGroup& /*rows*/) const override {
    return {{0, shape.kv_len}, {0, shape.kv_len}};
  }
  void hide(const ScoreShape& shape, const RowGroup& rows, RowRange keys,
            KeyBits* seen) const final {
    const std::int64_t moved = shift(shape, rows.batch);
    const std::int64_t first_key = tile_of(keys);
    std::int64_t last = rows.q_idx[0] + moved;
    KeyBits shown = part().seen(last, first_key);
    for (std::int32_t r = 0; r < rows.num_rows; ++r) {
      const std::int64_t position = rows.q_idx[r] + moved;
      if (!part().see_alike(last, position)) shown = part().seen(position, first_key);
      seen[r] &= shown;
      last = position;
    }
  }

  // True if queries at the two positions certainly see the same keys.
  bool see_alike(std::int64_t position, std::int64_t other) const { return position == other; }
  std::int64_t next(RowRange /*positions*/, std::int64_t key) const { return key; }
  kernels::Visibility of_ranges(RowRange /*positions*/, RowRange /*keys*/) const {
    return kernels::Visibility::kMixed;
  }

 protected:
  // The position of a query of the call among the keys.
  std::int64_t position(const ScoreShape& shape, const AttentionRow& row) const {
    return row.query + alignment_.resolve(shape, row.batch);
  }

  // The positions from the least of a row to the greatest.
  RowRange positions(const ScoreShape& shape, const RowGroup& rows) const {
    const RowRange given = rows.positions();
    const std::int64_t moved = shift(shape, rows.batch);
    return {given.begin + moved, given.end + moved};
  }

 private:
  const Part& part() const { return static_cast<const Part&>(*this); }

  // The shift from a query's position in the call, query_offset included, to its position among the
  // keys.
  std::int64_t shift(const ScoreShape& shape, std::int64_t batch) const {
    return alignment_.resolve(shape, batch) - shape.query_offset[batch];
  }

  const char* name_;
  std::string arguments_;
  Alignment alignment_;
};

}}}  // namespace heed::v0::detail
