// Prefixes that several sequences have in the same pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/cache/page_pool.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 { namespace detail {

// Consecutive members of SharedPrefixes::order, and a range of stretches of pages, numbered from 0,
// that all of them share.
struct SharedPrefix {
  RowRange members;
  RowRange stretches;
};

struct SharedPrefixes {
  // The sequences that share anything. Those that share more are closer to each other.
  std::vector<std::size_t> order;
  // The prefixes by level. Those of the first level begin with stretch 0; those of another level
  // begin where a prefix of the level before, which more sequences share, ends. A sequence is in at
  // most one prefix of each level.
  std::vector<std::vector<SharedPrefix>> levels;
};

// Finds the prefixes of sequences that begin with these pages, in whole stretches of `stretch`
// pages.
SharedPrefixes find_shared_prefixes(std::span<const std::span<Page* const>> beginnings,
                                    std::int64_t stretch);

}}}  // namespace heed::v0::detail
