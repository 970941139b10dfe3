#include "attention/cache/shared_prefixes.h"

#include <algorithm>
#include <functional>

namespace heed { inline namespace v0 { namespace detail {

namespace {

using Beginning = std::span<Page* const>;

std::int64_t shared_stretches(const Beginning& a, const Beginning& b, std::int64_t stretch) {
  const auto same = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  return same / stretch;
}

// The runs of members of `whole` in which each member shares more than `whole` with the one before
// it, and the pages that all members of a run share. shared[i] is the number of stretches that
// member i shares with the one before it.
std::vector<SharedPrefix> split(const SharedPrefix& whole,
                                const std::vector<std::int64_t>& shared) {
  std::vector<SharedPrefix> runs;
  for (std::int64_t i = whole.members.begin + 1; i < whole.members.end; ++i) {
    const std::int64_t common = shared[static_cast<std::size_t>(i)];
    if (common <= whole.stretches.end) continue;
    if (runs.empty() || runs.back().members.end != i) {
      runs.push_back({{i - 1, i}, {whole.stretches.end, common}});
    }
    runs.back().members.end = i + 1;
    runs.back().stretches.end = std::min(runs.back().stretches.end, common);
  }
  return runs;
}

}  // namespace

SharedPrefixes find_shared_prefixes(std::span<const Beginning> beginnings, std::int64_t stretch) {
  std::vector<std::size_t> sorted(beginnings.size());
  for (std::size_t i = 0; i < sorted.size(); ++i) sorted[i] = i;
  std::sort(sorted.begin(), sorted.end(), [&](std::size_t a, std::size_t b) {
    return std::lexicographical_compare(beginnings[a].begin(), beginnings[a].end(),
                                        beginnings[b].begin(), beginnings[b].end(), std::less<>());
  });
  const auto shared_with_next = [&](std::size_t i) {
    return i + 1 == sorted.size()
               ? 0
               : shared_stretches(beginnings[sorted[i]], beginnings[sorted[i + 1]], stretch);
  };
  SharedPrefixes found;
  std::vector<std::int64_t> shared;  // by each in `order` with the one before it
  std::int64_t with_last = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const std::int64_t with_next = shared_with_next(i);
    if (with_last > 0 || with_next > 0) {
      found.order.push_back(sorted[i]);
      shared.push_back(with_last);
    }
    with_last = with_next;
  }
  std::vector<SharedPrefix> level{{{0, std::ssize(shared)}, {0, 0}}};
  while (!level.empty()) {
    std::vector<SharedPrefix> next;
    for (const SharedPrefix& prefix : level) {
      const auto runs = split(prefix, shared);
      next.insert(next.end(), runs.begin(), runs.end());
    }
    if (!next.empty()) found.levels.push_back(next);
    level = std::move(next);
  }
  return found;
}

}}}  // namespace heed::v0::detail
