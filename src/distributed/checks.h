// The checks of all communicators. Inline, because the MPI library has its own copy.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string_view>

#include "heed/core/config.h"
#include "heed/core/error.h"
#include "heed/core/shape.h"

namespace heed { inline namespace v0 {

inline constexpr int kNumTags = 32768;

inline void check_root(std::string_view function, std::string_view argument, int rank, int size) {
  if (rank >= 0 && rank < size) return;
  throw InvalidArgument(fmt::format("{}: {} is {}, expected a rank from 0 to {}", function,
                                    argument, rank, size - 1));
}

inline void check_peer(std::string_view function, std::string_view argument, int peer, int rank,
                       int size) {
  check_root(function, argument, peer, size);
  if (peer != rank) return;
  throw InvalidArgument(
      fmt::format("{}: {} is {}, the rank itself, expected another", function, argument, peer));
}

inline void check_tag(std::string_view function, int tag) {
  if (tag >= 0 && tag < kNumTags) return;
  throw InvalidArgument(
      fmt::format("{}: tag is {}, expected 0 to {}", function, tag, kNumTags - 1));
}

inline void check_gather(std::size_t mine, std::size_t all, int size) {
  const auto expected =
      static_cast<std::size_t>(checked_multiply(static_cast<std::int64_t>(mine), size));
  if (all == expected) return;
  throw InvalidArgument(fmt::format(
      "gather: all has {} bytes, expected {}, {} for each of {} ranks", all, expected, mine, size));
}

}}  // namespace heed::v0
