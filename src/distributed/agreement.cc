#include "distributed/agreement.h"

#include <fmt/format.h>

#include <numeric>

#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace distributed {

std::vector<bool> any_rank_says(Communicator& ranks, const std::vector<std::uint8_t>& mine) {
  const std::vector<std::uint8_t> all = gather_all(ranks, std::span(mine));
  std::vector<bool> any(mine.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i] != 0) any[i % mine.size()] = true;
  }
  return any;
}

void check_alike(const char* function, Communicator& ranks, const std::string& mine) {
  const std::vector<std::string> all = gather_texts(ranks, mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw InvalidArgument(
        fmt::format("{}: rank {} has {}, but rank 0 has {}", function, rank, all[rank], all[0]));
  }
}

TokenDivision divide_tokens(const char* function, Communicator& ranks, const char* name,
                            std::int64_t own) {
  const std::vector<std::int64_t> lengths =
      gather_all(ranks, std::span<const std::int64_t>(&own, 1));
  const TokenDivision division(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}),
                               ranks.size());
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const std::int64_t found = lengths[static_cast<std::size_t>(rank)];
    if (found == division.num_tokens(rank)) continue;
    throw InvalidArgument(fmt::format("{}: rank {} has {} of {} {}, expected {}", function, rank,
                                      found, division.length(), name, division.num_tokens(rank)));
  }
  return division;
}

}}}  // namespace heed::v0::distributed
