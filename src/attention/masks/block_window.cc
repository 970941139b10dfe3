// A window of blocks.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "attention/masks/aligned.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 {

namespace {

class BlockWindow final : public detail::Aligned {
 public:
  BlockWindow(std::int64_t left, std::int64_t right, std::int64_t block, Alignment alignment)
      : Aligned("block_window",
                fmt::format("{}, {}, {}", detail::side_text(left), detail::side_text(right), block),
                std::move(alignment)),
        left_(std::min(left, detail::kFar / block) * block),
        right_(std::min(right, detail::kFar / block) * block),
        block_(block) {}

  std::int64_t query_block() const override { return block_; }

 private:
  RowRange range_at(std::int64_t position) const override {
    const std::int64_t first = detail::block_of(position, block_) * block_;
    return {first - left_, first + block_ + right_};
  }

  std::int64_t left_;
  std::int64_t right_;
  std::int64_t block_;
};

}  // namespace

Mask block_window(std::int64_t left, std::int64_t right, std::int64_t block, Alignment alignment) {
  detail::check_number("block_window", "left", left, 0, kUnbounded);
  detail::check_number("block_window", "right", right, 0, kUnbounded);
  detail::check_number("block_window", "block", block, 1);
  return Mask(std::make_shared<BlockWindow>(left, right, block, std::move(alignment)));
}

}}  // namespace heed::v0
