// A mask by which a key is visible where at least one of several masks shows it: a | b.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "attention/masks/all_of.h"
#include "attention/masks/mask_part.h"
#include "heed/error.h"
#include "heed/mask.h"

namespace heed::inline v0 {

namespace {

using detail::AllOf;
using detail::GroupRanges;
using detail::IrregularPart;
using detail::RowGroup;
using detail::ScoreIndex;
using kernels::kTileKeys;
using kernels::Visibility;

class AnyOf final : public IrregularPart<AnyOf> {
 public:
  explicit AnyOf(std::vector<AllOf> masks) : masks_(std::move(masks)) {}

  const std::vector<AllOf>& masks() const { return masks_; }

  void check(const ScoreShape& shape) const override {
    for (const AllOf& mask : masks_) mask.check(shape);
  }
  std::string description() const override {
    std::vector<std::string> names;
    names.reserve(masks_.size());
    for (const AllOf& mask : masks_) {
      const std::string name = mask.description();
      names.push_back(mask.size() > 1 ? "(" + name + ")" : name);
    }
    return fmt::format("{}", fmt::join(names, " | "));
  }
  const Alignment* alignment() const override {
    const Alignment* found = nullptr;
    for (const AllOf& mask : masks_) {
      const Alignment* one = mask.alignment();
      if (one != nullptr && (found == nullptr || !one->is_bottom_right())) found = one;
    }
    return found;
  }
  bool is_alternative() const override { return true; }
  bool visible(const ScoreShape& shape, const ScoreIndex& at) const override {
    return std::any_of(masks_.begin(), masks_.end(),
                       [&](const AllOf& mask) { return mask.visible(shape, at); });
  }

  std::int64_t next_key(const ScoreShape& shape, const RowGroup& rows,
                        std::int64_t key) const override {
    std::int64_t next = shape.kv_len;
    for (const AllOf& mask : masks_) {
      const RowRange keys = mask.ranges(shape, rows).of_any;
      const std::int64_t from = std::max(key, keys.begin / kTileKeys * kTileKeys);
      if (from >= keys.end) continue;
      const std::int64_t found = mask.next_key(shape, rows, from);
      if (found < keys.end) next = std::min(next, found);
      if (next <= key) break;
    }
    return next;
  }

  Visibility visibility(const ScoreShape& shape, const RowGroup& rows,
                        RowRange keys) const override {
    auto any = Visibility::kNone;
    for (const AllOf& mask : masks_) {
      const auto one = shown_by(mask, shape, rows, keys);
      if (one == Visibility::kAll) return one;
      if (one == Visibility::kMixed) any = one;
    }
    return any;
  }

  // Where one of the masks alone shows keys of the tile.
  std::optional<detail::SeenKeys> seen_keys(const ScoreShape& shape, const RowGroup& rows,
                                            RowRange keys) const override {
    const AllOf* alone = nullptr;
    for (const AllOf& mask : masks_) {
      if (shown_by(mask, shape, rows, keys) == Visibility::kNone) continue;
      if (alone != nullptr) return std::nullopt;
      alone = &mask;
    }
    auto seen = alone == nullptr ? std::nullopt : alone->seen_keys(shape, rows, keys);
    if (!seen || (keys & alone->ranges(shape, rows).of_all) == keys) return seen;
    if (seen->alone != nullptr) return std::nullopt;
    seen->alone = alone;
    return seen;
  }

  template <class Real>
  void hide_in(const ScoreShape& shape, const detail::BasicScoreTile<Real>& tile,
               const kernels::BasicKernelTable<Real>& table) const {
    alignas(64) std::array<Real, std::size_t{kTileKeys} * kernels::kMaxPanelWidth> all;
    alignas(64) std::array<Real, std::size_t{kTileKeys} * kernels::kMaxPanelWidth> one;
    const RowGroup rows{tile.batch, tile.width, tile.heads, tile.q_idx};
    const RowRange keys{tile.first_key + tile.begin, tile.first_key + tile.end};
    const std::int64_t begin = std::int64_t{tile.begin} * tile.width;
    const std::int64_t end = std::int64_t{tile.end} * tile.width;
    std::fill(all.begin() + begin, all.begin() + end, kHidden<Real>);
    for (const AllOf& mask : masks_) {
      if (shown_by(mask, shape, rows, keys) == Visibility::kNone) continue;
      detail::BasicScoreTile<Real> shown = tile;
      shown.scores = one.data();
      mask.show(shape, shown, table);
      for (std::int64_t i = begin; i < end; ++i) {
        all[static_cast<std::size_t>(i)] =
            std::max(all[static_cast<std::size_t>(i)], one[static_cast<std::size_t>(i)]);
      }
    }
    for (std::int64_t i = begin; i < end; ++i) {
      tile.scores[i] += all[static_cast<std::size_t>(i)];
    }
  }

 private:
  // What one of the masks shows of these keys, its ranges included.
  static Visibility shown_by(const AllOf& mask, const ScoreShape& shape, const RowGroup& rows,
                             RowRange keys) {
    const GroupRanges found = mask.ranges(shape, rows);
    if (keys.end <= found.of_any.begin || keys.begin >= found.of_any.end) return Visibility::kNone;
    const auto one = mask.visibility(shape, rows, keys);
    return one == Visibility::kAll && (keys & found.of_all) != keys ? Visibility::kMixed : one;
  }

  template <class Real>
  static constexpr Real kHidden = -std::numeric_limits<Real>::infinity();

  std::vector<AllOf> masks_;
};

// The masks of which `mask` is any, itself if it is no such mask.
std::vector<AllOf> alternatives(const Mask& mask) {
  if (mask.parts().size() == 1) {
    if (const auto* any = dynamic_cast<const AnyOf*>(mask.parts().front().get())) {
      return any->masks();
    }
  }
  return {AllOf(mask)};
}

}  // namespace

Mask operator|(const Mask& a, const Mask& b) {
  std::vector<AllOf> masks = alternatives(a);
  for (AllOf& mask : alternatives(b)) masks.push_back(std::move(mask));
  for (const AllOf& mask : masks) {
    if (mask.adds()) {
      throw InvalidArgument(fmt::format(
          "{}: what an additive mask adds has no place in |; write it behind, as (a | b) & added",
          mask.description()));
    }
    if (mask.size() == 0) return {};
  }
  return Mask(std::make_shared<AnyOf>(std::move(masks)));
}

}  // namespace heed::inline v0
