// Agreement among ranks before messages depend on it. All ranks call each of these functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/distributed/attention.h"
#include "heed/distributed/communicator.h"

namespace heed { inline namespace v0 { namespace distributed {

// Returns the numbers of every rank, equally many from each, in the order of ranks.
template <class Number>
std::vector<Number> gather_all(Communicator& ranks, std::span<const Number> mine) {
  std::vector<Number> all(mine.size() * static_cast<std::size_t>(ranks.size()));
  ranks.gather(std::as_bytes(mine), std::as_writable_bytes(std::span(all)));
  return all;
}

// For each of some questions, returns true if some rank's answer is 1 (yes).
std::vector<bool> any_rank_says(Communicator& ranks, const std::vector<std::uint8_t>& mine);

// Throws the same InvalidArgument on all ranks, with `function` in front, if the text `mine` of
// some rank differs from rank 0's.
void check_alike(const char* function, Communicator& ranks, const std::string& mine);

// Returns the division of the tokens of all ranks, called `name` in errors. Throws the same
// InvalidArgument on all ranks, with `function` in front, unless each rank has its own tokens.
TokenDivision divide_tokens(const char* function, Communicator& ranks, const char* name,
                            std::int64_t own);

}}}  // namespace heed::v0::distributed
