// Which pages hold the positions of a sequence.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/cache/page_pool.h"

namespace heed::inline v0::detail {

// Pages by their number in the sequence: page j has the positions from j · page_size on. Between
// the first pages, which stay, and the others there may be a gap of pages that are gone, so that
// memory is bounded by the pages that are there. It counts no references.
class PageTable {
 public:
  // `kept` first pages never go.
  explicit PageTable(std::int64_t kept = 0) : kept_(kept) {}

  // One more than the number of the last page.
  std::int64_t end() const { return held() + gap_; }
  // Pages that are there.
  std::int64_t held() const { return static_cast<std::int64_t>(pages_.size()); }

  // Null where it is gone.
  Page* operator[](std::int64_t j) const {
    if (j < kept_ || gap_ == 0) return pages_[static_cast<std::size_t>(j)];
    return j < kept_ + gap_ ? nullptr : pages_[static_cast<std::size_t>(j - gap_)];
  }
  void replace(std::int64_t j, Page* page) {
    pages_[static_cast<std::size_t>(j < kept_ ? j : j - gap_)] = page;
  }

  // So that `count` pages may be pushed without an allocation.
  void reserve(std::int64_t count) {
    const std::size_t size = pages_.size() + static_cast<std::size_t>(count);
    if (size > pages_.capacity()) pages_.reserve(std::max(size, 2 * pages_.capacity()));
  }
  void push(Page* page) { pages_.push_back(page); }
  // Takes away the last page.
  void pop() {
    pages_.pop_back();
    if (held() <= kept_) gap_ = 0;
  }

  // The first page that may go: all from there up to `end` go.
  std::int64_t gap_end() const { return kept_ + gap_; }
  void widen_gap(std::int64_t end) {
    if (end <= gap_end()) return;
    const auto first = pages_.begin() + kept_;
    pages_.erase(first, first + (end - gap_end()));
    gap_ = end - kept_;
  }

  const std::vector<Page*>& pages() const { return pages_; }

 private:
  std::int64_t kept_;
  std::int64_t gap_ = 0;
  std::vector<Page*> pages_;
};

}  // namespace heed::inline v0::detail
