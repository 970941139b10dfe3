// Sums over ranks that do not depend on when messages arrive.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "heed/communicator.h"

namespace heed::inline v0::distributed {

// Makes `numbers` the sum of those of all ranks, added in the order of ranks, on every rank. All
// ranks call it with equally many.
template <class Real>
void sum_in_order(Communicator& ranks, std::span<Real> numbers) {
  constexpr std::size_t kAtOnce = 65536;
  if (ranks.size() == 1) return;
  std::vector<Real> all(std::min(kAtOnce, numbers.size()) * static_cast<std::size_t>(ranks.size()));
  for (std::size_t first = 0; first < numbers.size(); first += kAtOnce) {
    const auto some = numbers.subspan(first, std::min(kAtOnce, numbers.size() - first));
    const auto received =
        std::span(all).first(some.size() * static_cast<std::size_t>(ranks.size()));
    ranks.gather(std::as_bytes(some), std::as_writable_bytes(received));
    std::copy_n(received.begin(), some.size(), some.begin());
    for (std::size_t i = some.size(); i < received.size(); ++i)
      some[i % some.size()] += received[i];
  }
}

}  // namespace heed::inline v0::distributed
