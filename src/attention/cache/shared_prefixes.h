// Beginnings that several sequences have on the same pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/cache/page_pool.h"
#include "heed/attention/mask.h"

namespace heed { inline namespace v0 { namespace detail {

// Some neighbours in SharedPrefixes::order, and stretches of pages, counted from 0, that all of
// them have in common.
struct SharedPrefix {
  RowRange members;
  RowRange stretches;
};

struct SharedPrefixes {
  // The sequences that share anything: those that share more stand closer together.
  std::vector<std::size_t> order;
  // The prefixes of the first level begin with stretch 0, those of another where one of the level
  // before ends, which more sequences have. Of one level a sequence has one prefix at most.
  std::vector<std::vector<SharedPrefix>> levels;
};

// Of sequences that begin with these pages, whole stretches of `stretch` pages each.
SharedPrefixes find_shared_prefixes(std::span<const std::span<Page* const>> beginnings,
                                    std::int64_t stretch);

}}}  // namespace heed::v0::detail
