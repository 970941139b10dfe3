// The disjunction of masks, a | b: a key is visible if at least one of them shows it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/masks/all_of.h"
#include "attention/masks/mask_part.h"
#include "heed/attention/mask.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

using detail::AllOf;
using detail::IrregularPart;
using detail::KeyBits;
using detail::QueryStretch;
using detail::RowBits;
using detail::RowGroup;
using detail::ScoreIndex;
using kernels::kTileKeys;

class AnyOf final : public IrregularPart {
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

  bool calls_function() const override {
    return std::any_of(masks_.begin(), masks_.end(),
                       [](const AllOf& mask) { return mask.calls_function(); });
  }

  // Starts with the last alternative, which in the published masks reaches furthest and shows most
  // tiles; if it shows this tile, the others need not be asked.
  std::int64_t next_key(const ScoreShape& shape, const RowGroup& rows,
                        std::int64_t key) const override {
    std::int64_t next = shape.kv_len;
    for (auto mask = masks_.rbegin(); mask != masks_.rend() && next > key; ++mask) {
      const RowRange keys = mask->ranges(shape, rows).of_any;
      const std::int64_t from = std::max(key, keys.begin / kTileKeys * kTileKeys);
      if (from >= std::min(keys.end, next)) continue;
      const std::int64_t found = mask->next_key(shape, rows, from);
      if (found < keys.end) next = std::min(next, found);
    }
    return next;
  }

  std::int64_t query_block() const override {
    for (const AllOf& mask : masks_) {
      if (mask.query_block() > 1) return mask.query_block();
    }
    return 1;
  }

  std::int64_t query_step_of_tiles() const override {
    for (const AllOf& mask : masks_) {
      if (mask.query_step_of_tiles() > 1) return mask.query_step_of_tiles();
    }
    return 1;
  }
  // The key_step() of the only alternative that shows some of these keys.
  std::int64_t key_step(const ScoreShape& shape, const QueryStretch& queries,
                        RowRange keys) const override {
    const AllOf* only = nullptr;
    for (const AllOf& mask : masks_) {
      if (!mask.may_show(shape, queries, keys)) continue;
      if (only != nullptr) return 1;
      only = &mask;
    }
    return only == nullptr ? 1 : only->key_step(shape, queries, keys);
  }
  bool may_show(const ScoreShape& shape, const QueryStretch& queries,
                RowRange keys) const override {
    return std::any_of(masks_.begin(), masks_.end(),
                       [&](const AllOf& mask) { return mask.may_show(shape, queries, keys); });
  }

  void hide(const ScoreShape& shape, const RowGroup& rows, RowRange keys,
            KeyBits* seen) const override {
    RowBits shown;
    RowBits one;
    for (const AllOf& mask : masks_) {
      mask.see(shape, rows, keys, one.data());
      for (std::size_t r = 0; r < static_cast<std::size_t>(rows.num_rows); ++r) shown[r] |= one[r];
    }
    for (std::int32_t r = 0; r < rows.num_rows; ++r) seen[r] &= shown[static_cast<std::size_t>(r)];
  }

 private:
  std::vector<AllOf> masks_;
};

// The alternatives of `mask`, or the mask itself if it has none.
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

}}  // namespace heed::v0
