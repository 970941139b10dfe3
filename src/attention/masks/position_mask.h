// Masks that are a rule for a query's position among the keys and a key.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "attention/masks/mask_part.h"

namespace heed::inline v0::detail {

// The keys k < end with k mod step = remainder.
struct StepRule {
  std::int64_t step = 1;
  std::int64_t remainder = 0;
  std::int64_t end = kUnbounded;

  // Those of a tile, by its first key.
  KeySteps in_tile(std::int64_t first_key) const {
    const std::int64_t length = std::clamp<std::int64_t>(end - first_key, 0, kernels::kTileKeys);
    const std::int64_t first = ((remainder - first_key) % step + step) % step;
    if (first >= length) return {.count = 0};
    return {static_cast<std::int32_t>(first),
            static_cast<std::int32_t>(std::min<std::int64_t>(step, kernels::kTileKeys)),
            static_cast<std::int32_t>((length - first - 1) / step + 1)};
  }
  friend bool operator==(const StepRule&, const StepRule&) = default;
};

// Part::sees(position, key) is the rule. What a part knows of ranges of positions and keys it says
// in Part::of_ranges(positions, keys), as visibility() does, and in Part::next(positions, key), as
// next_key() does; `positions` are those from the first row's to the last one's. A part that
// shows a position keys in steps says which in Part::step_rule(positions, position): the same for
// all positions, or for those query_step() apart.
template <class Part>
class PositionMask : public IrregularPart<Part> {
 public:
  PositionMask(const char* name, std::string arguments, Alignment alignment)
      : name_(name), arguments_(std::move(arguments)), alignment_(std::move(alignment)) {}

  void check(const ScoreShape& shape) const override { alignment_.check(name_, shape); }
  std::string description() const override {
    const std::string aligned = alignment_.description();
    return fmt::format("{}({}{}{})", name_, arguments_, aligned.empty() ? "" : ", ", aligned);
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
  std::optional<SeenKeys> seen_keys(const ScoreShape& shape, const RowGroup& rows,
                                    RowRange keys) const final {
    const std::int64_t first = rows.q_idx[0] + shift(shape, rows.batch);
    const auto rule = part().step_rule(positions(shape, rows), first);
    if (!rule) return std::nullopt;
    // Where keys go with the position, rows that are whole steps apart see the same ones.
    constexpr std::int64_t kFarthest = std::numeric_limits<std::int32_t>::max();
    const auto apart = static_cast<std::int32_t>(std::min(part().query_step(), kFarthest));
    for (std::int32_t r = 1; r < rows.num_rows; ++r) {
      if ((rows.q_idx[r] - rows.q_idx[0]) % apart != 0) return std::nullopt;
    }
    return SeenKeys{rule->in_tile(keys.begin / kernels::kTileKeys * kernels::kTileKeys)};
  }
  template <class Real>
  void hide_in(const ScoreShape& shape, const BasicScoreTile<Real>& tile,
               const kernels::BasicKernelTable<Real>&) const {
    const std::int64_t moved = shift(shape, tile.batch);
    for (std::int32_t r = 0; r < tile.width; ++r) {
      const std::int64_t position = tile.q_idx[r] + moved;
      for (std::int32_t j = tile.begin; j < tile.end; ++j) {
        if (part().sees(position, std::int64_t{tile.first_key} + j)) continue;
        tile.scores[std::int64_t{j} * tile.width + r] = -std::numeric_limits<Real>::infinity();
      }
    }
  }

  std::int64_t next(RowRange /*positions*/, std::int64_t key) const { return key; }
  kernels::Visibility of_ranges(RowRange /*positions*/, RowRange /*keys*/) const {
    return kernels::Visibility::kMixed;
  }
  std::optional<StepRule> step_rule(RowRange /*positions*/, std::int64_t /*position*/) const {
    return std::nullopt;
  }

 protected:
  // Where a query of the call stands among the keys.
  std::int64_t position(const ScoreShape& shape, const AttentionRow& row) const {
    return row.query + alignment_.resolve(shape, row.batch);
  }

 private:
  const Part& part() const { return static_cast<const Part&>(*this); }

  // From a position of the call, which counts query_offset, to one among the keys.
  std::int64_t shift(const ScoreShape& shape, std::int64_t batch) const {
    return alignment_.resolve(shape, batch) - shape.query_offset[batch];
  }
  RowRange positions(const ScoreShape& shape, const RowGroup& rows) const {
    const auto [first, last] = std::minmax_element(rows.q_idx, rows.q_idx + rows.num_rows);
    const std::int64_t moved = shift(shape, rows.batch);
    return {*first + moved, *last + moved + 1};
  }

  const char* name_;
  std::string arguments_;
  Alignment alignment_;
};

}  // namespace heed::inline v0::detail
