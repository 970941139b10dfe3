// Masks by the names under which they were published.
#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "heed/error.h"
#include "heed/mask.h"

namespace heed::inline v0 {

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

}  // namespace heed::inline v0
