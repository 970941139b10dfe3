// Keys at multiples of a step: from the query (strided, dilated), or from the start of the sequence
// (columns).
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <utility>

#include "attention/masks/aligned.h"
#include "attention/masks/position_mask.h"
#include "heed/attention/mask.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

using detail::check_number;
using detail::KeyBits;
using detail::kMaxOffset;
using kernels::Visibility;

// Keys at multiples of a step from a given key, before and after it.
class Steps {
 public:
  explicit Steps(std::int64_t step) : step_(step), from_first_(KeyBits::in_steps(step)) {}

  // The keys at multiples of the step from `key`, in the tile that begins at first_key.
  KeyBits from(std::int64_t key, std::int64_t first_key) const {
    const std::int64_t after = (key - first_key) % step_;
    return from_first_ << (after < 0 ? after + step_ : after);
  }

 private:
  std::int64_t step_;
  KeyBits from_first_;  // every step_-th key of a tile, from its first on
};

class Strided final : public detail::PositionMask<Strided> {
 public:
  Strided(std::int64_t stride, Alignment alignment)
      : PositionMask("strided", fmt::format("{}", stride), std::move(alignment)),
        stride_(stride),
        steps_(stride) {}

  bool sees(std::int64_t position, std::int64_t key) const {
    return (position - key) % stride_ == 0;
  }
  KeyBits seen(std::int64_t position, std::int64_t first_key) const {
    return steps_.from(position, first_key);
  }
  bool see_alike(std::int64_t position, std::int64_t other) const {
    return other == position || other == position + stride_;
  }
  std::int64_t query_step() const override { return stride_; }

 private:
  std::int64_t stride_;
  Steps steps_;
};

class Columns final : public detail::PositionMask<Columns> {
 public:
  explicit Columns(std::int64_t stride)
      : PositionMask("columns", fmt::format("{}", stride), Alignment::top_left()),
        stride_(stride),
        steps_(stride) {}

  std::string description() const override { return fmt::format("columns({})", stride_); }
  const Alignment* alignment() const override { return nullptr; }
  bool sees(std::int64_t /*position*/, std::int64_t key) const {
    return key % stride_ == stride_ - 1;
  }
  std::int64_t next(RowRange /*positions*/, std::int64_t key) const {
    return key / stride_ * stride_ + stride_ - 1;
  }
  KeyBits seen(std::int64_t /*position*/, std::int64_t first_key) const {
    return steps_.from(stride_ - 1, first_key);
  }
  bool see_alike(std::int64_t /*position*/, std::int64_t /*other*/) const { return true; }

 private:
  std::int64_t stride_;
  Steps steps_;
};

class Dilated final : public detail::PositionMask<Dilated> {
 public:
  Dilated(std::int64_t window, std::int64_t step, Alignment alignment)
      : PositionMask("dilated", fmt::format("{}, {}", window, step), std::move(alignment)),
        step_(step),
        reach_(window * step),
        steps_(step) {}

  // The range of the window; hide() removes the keys between the steps.
  RowRange range(const ScoreShape& shape, const AttentionRow& row) const override {
    const std::int64_t position = this->position(shape, row);
    return {position - reach_, position + reach_ + 1};
  }
  detail::GroupRanges ranges(const ScoreShape& shape, const detail::RowGroup& rows) const override {
    const RowRange of_rows = positions(shape, rows);
    return {{of_rows.end - 1 - reach_, of_rows.begin + reach_ + 1},
            {of_rows.begin - reach_, of_rows.end + reach_}};
  }
  bool sees(std::int64_t position, std::int64_t key) const {
    const std::int64_t distance = position - key;
    return std::abs(distance) <= reach_ && distance % step_ == 0;
  }
  KeyBits seen(std::int64_t position, std::int64_t first_key) const {
    return steps_.from(position, first_key) &
           KeyBits::between(position - reach_ - first_key, position + reach_ + 1 - first_key);
  }
  std::int64_t query_step() const override { return step_; }
  std::int64_t next(RowRange positions, std::int64_t key) const {
    if (key > positions.end - 1 + reach_) return kUnbounded;
    return std::max(key, positions.begin - reach_);
  }
  Visibility of_ranges(RowRange positions, RowRange keys) const {
    const bool is_none =
        keys.end <= positions.begin - reach_ || keys.begin > positions.end - 1 + reach_;
    return is_none ? Visibility::kNone : Visibility::kMixed;
  }

 private:
  std::int64_t step_;
  std::int64_t reach_;
  Steps steps_;
};

}  // namespace

Mask strided(std::int64_t stride, Alignment alignment) {
  check_number("strided", "stride", stride, 1);
  return Mask(std::make_shared<Strided>(stride, std::move(alignment)));
}

Mask columns(std::int64_t stride) {
  check_number("columns", "stride", stride, 1);
  return Mask(std::make_shared<Columns>(stride));
}

Mask dilated(std::int64_t window, std::int64_t step, Alignment alignment) {
  check_number("dilated", "window", window, 0);
  check_number("dilated", "step", step, 1);
  check_number("dilated", "window · step", window > kMaxOffset / step ? -1 : window * step, 0);
  return Mask(std::make_shared<Dilated>(window, step, std::move(alignment)));
}

}}  // namespace heed::v0
