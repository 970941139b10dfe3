// Tokens that see every key and that every query sees.
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "attention/masks/position_mask.h"
#include "heed/attention/mask.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

using detail::KeyBits;
using kernels::Visibility;

class GlobalTokens final : public detail::PositionMask<GlobalTokens> {
 public:
  GlobalTokens(std::int64_t count, Alignment alignment)
      : PositionMask("global_tokens", fmt::format("{}", count), std::move(alignment)),
        count_(count) {}

  bool sees(std::int64_t position, std::int64_t key) const {
    return key < count_ || position < count_;
  }
  std::int64_t next(RowRange positions, std::int64_t key) const {
    return key < count_ || positions.begin < count_ ? key : kUnbounded;
  }
  bool see_alike(std::int64_t position, std::int64_t other) const {
    return (position < count_) == (other < count_);
  }
  KeyBits seen(std::int64_t position, std::int64_t first_key) const {
    return position < count_ ? KeyBits::all() : KeyBits::between(0, count_ - first_key);
  }
  Visibility of_ranges(RowRange positions, RowRange keys) const {
    if (keys.end <= count_ || positions.end <= count_) return Visibility::kAll;
    const bool is_none = keys.begin >= count_ && positions.begin >= count_;
    return is_none ? Visibility::kNone : Visibility::kMixed;
  }

 private:
  std::int64_t count_;
};

}  // namespace

Mask global_tokens(std::int64_t count, Alignment alignment) {
  if (count < 0) {
    throw InvalidArgument(fmt::format("global_tokens: count is {}, expected at least 0", count));
  }
  return Mask(std::make_shared<GlobalTokens>(count, std::move(alignment)));
}

}}  // namespace heed::v0
