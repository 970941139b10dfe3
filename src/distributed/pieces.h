// Splits messages that are longer than an int can count, for MPI. Inline, because the MPI library
// has its own copy.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/error.h"
#include "heed/distributed/communicator.h"

namespace heed { inline namespace v0 {

inline void check_piece_bytes(std::string_view function, std::size_t bytes) {
  if (bytes >= 1 && bytes <= INT_MAX) return;
  throw InvalidArgument(
      fmt::format("{}: piece_bytes is {}, expected 1 to {}", function, bytes, INT_MAX));
}

// Calls visit(piece) for each piece. Between two ranks, the last piece is shorter than the others
// and may be empty, so that a receiver that expects another length notices.
template <class Byte, class Visit>
void for_each_piece(std::span<Byte> message, std::size_t piece_bytes, const Visit& visit) {
  for (std::size_t first = 0; first <= message.size(); first += piece_bytes) {
    visit(message.subspan(first, std::min(piece_bytes, message.size() - first)));
  }
}

// gather() for parts that are longer than a piece. Each rank's part is already in its place.
template <class Ranks>
void gather_by_broadcasts(Ranks& ranks, std::span<std::byte> all) {
  const std::size_t part = all.size() / static_cast<std::size_t>(ranks.size());
  std::vector<std::unique_ptr<Transfer>> transfers;
  transfers.reserve(static_cast<std::size_t>(ranks.size()));
  for (int root = 0; root < ranks.size(); ++root) {
    transfers.push_back(
        ranks.broadcast(all.subspan(static_cast<std::size_t>(root) * part, part), root));
  }
  for (const auto& transfer : transfers) transfer->wait();
}

}}  // namespace heed::v0
