// What messages between ranks have in common: their checks, their division into pieces that an int
// can count, for MPI, and their tags. Inline, because the MPI library has its own copy.
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
#include "heed/core/shape.h"
#include "heed/distributed/communicator.h"

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

namespace heed { inline namespace v0 { namespace distributed {

inline constexpr int kKeysTag = 1;       // keys and values of a segment
inline constexpr int kGradientsTag = 2;  // a rank's contribution to their gradients
inline constexpr int kHeadsTag = 3;      // rows of a rank's heads

// The tags of a sum over ranks: of parts sent to the rank that sums them, and of sums sent to all.
struct SumTags {
  int parts;
  int sums;
};
inline constexpr SumTags kOptionSums{4, 5};  // gradients of the tensors in options
// gradients of parameters, while other sums are in transit
inline constexpr SumTags kParameterSums{6, 7};

}}}  // namespace heed::v0::distributed
