// The sliding window.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "attention/masks/aligned.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 {

namespace {

using detail::Aligned;

class SlidingWindow final : public Aligned {
 public:
  SlidingWindow(std::int64_t left, std::int64_t right, Alignment alignment)
      : Aligned("sliding_window",
                fmt::format("{}, {}", detail::side_text(left), detail::side_text(right)),
                std::move(alignment)),
        left_(std::min(left, detail::kMaxOffset)),
        right_(std::min(right, detail::kMaxOffset)) {}

 private:
  RowRange range_at(std::int64_t position) const override {
    return {position - left_, position + right_ + 1};
  }

  std::int64_t left_;
  std::int64_t right_;
};

}  // namespace

Mask sliding_window(std::int64_t left, std::int64_t right, Alignment alignment) {
  if (left < 0 || right < 0) {
    throw InvalidArgument(fmt::format(
        "sliding_window: left is {} and right {}, expected at least 0 (kUnbounded for no bound)",
        left, right));
  }
  return Mask(std::make_shared<SlidingWindow>(left, right, std::move(alignment)));
}

}}  // namespace heed::v0
