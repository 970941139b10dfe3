// What ranks find out about each other before messages depend on it. All ranks call each of these.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/distributed/attention.h"
#include "heed/distributed/communicator.h"

namespace heed { inline namespace v0 { namespace distributed {

// What every rank has, equally many of each, in the order of ranks.
template <class Number>
std::vector<Number> gather_all(Communicator& ranks, std::span<const Number> mine) {
  std::vector<Number> all(mine.size() * static_cast<std::size_t>(ranks.size()));
  ranks.gather(std::as_bytes(mine), std::as_writable_bytes(std::span(all)));
  return all;
}

// Of each of some questions, whether some rank says yes, 1.
std::vector<bool> any_rank_says(Communicator& ranks, const std::vector<std::uint8_t>& mine);

// Throws the same InvalidArgument on all ranks, with `function` in front, where one of them has
// something else, in words, than rank 0.
void check_alike(const char* function, Communicator& ranks, const std::string& mine);

// How the tokens that all ranks have together, called `name`, are divided. Throws the same
// InvalidArgument on all ranks, with `function` in front, unless each has those that are its own.
TokenDivision divide_tokens(const char* function, Communicator& ranks, const char* name,
                            std::int64_t own);

}}}  // namespace heed::v0::distributed
