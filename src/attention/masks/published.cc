// Masks by the names under which they were published.
#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "attention/masks/aligned.h"
#include "heed/attention/mask.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

Mask longformer(std::int64_t window, std::int64_t global, Alignment alignment) {
  if (window < 0) {
    throw InvalidArgument(fmt::format("longformer: window is {}, expected at least 0", window));
  }
  const Mask near = sliding_window(window, window, alignment);
  return near | global_tokens(global, std::move(alignment));
}

Mask sparse_transformer(std::int64_t stride, Alignment alignment) {
  const Mask far = strided(stride, alignment);
  const Mask visible = sliding_window(stride - 1, 0, alignment) | far;
  return visible & causal(std::move(alignment));
}

Mask bigbird(const BigBird& numbers, Alignment alignment) {
  detail::check_number("bigbird", "block", numbers.block, 1);
  detail::check_number("bigbird", "window", numbers.window, 1);
  detail::check_number("bigbird", "global", numbers.global, 0, detail::kMaxOffset / numbers.block);
  if (numbers.window % 2 == 0) {
    throw InvalidArgument(
        fmt::format("bigbird: window is {}, expected an odd number of blocks", numbers.window));
  }
  const std::int64_t side = numbers.window / 2;
  const Mask near = block_window(side, side, numbers.block, alignment);
  const Mask global = global_tokens(numbers.global * numbers.block, alignment);
  return near | global |
         random_blocks({.count = numbers.random, .block = numbers.block, .seed = numbers.seed},
                       std::move(alignment));
}

}}  // namespace heed::v0
