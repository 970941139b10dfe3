// Loops over rows between the products of a forward pass, divided among threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "heed/core/parallel.h"

namespace heed { inline namespace v0 { namespace models {

// Elements per thread and step in the loops between products.
inline constexpr std::int64_t kElementsAtOnce = std::int64_t{1} << 14;

// Calls body(row) for every row of `width` elements.
template <class Body>
void for_rows(std::int64_t rows, std::int64_t width, Body body) {
  const std::int64_t grain =
      std::max<std::int64_t>(1, kElementsAtOnce / std::max<std::int64_t>(1, width));
  parallel_for(0, rows, grain, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row) body(row);
  });
}

}}}  // namespace heed::v0::models
