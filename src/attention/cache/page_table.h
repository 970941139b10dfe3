// Which pages hold the positions of a sequence.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/cache/page_pool.h"

namespace heed { inline namespace v0 { namespace detail {

// Pages by their number in the sequence: page j has the positions from j · page_size on. The first
// `kept` stay; behind them may be a gap of pages that are gone, so that memory is bounded by the
// pages that are there. It counts no references.
//
// Always: where there is a gap, all of the first pages are there, and end() ≥ gap_end(). Behind the
// gap there may be no page, as after a rewind to where the gap ends: it is a gap all the same, for
// the pages to come have the numbers behind it. Only who takes away what is before the gap closes
// it.
class PageTable {
 public:
  explicit PageTable(std::int64_t kept = 0) : kept_(kept) {}

  // One more than the number of the last page, be it there or gone.
  std::int64_t end() const { return held() + gap_; }
  // Pages that are there.
  std::int64_t held() const { return static_cast<std::int64_t>(pages_.size()); }

  // Page j < end(); null where it is gone.
  Page* operator[](std::int64_t j) const {
    assert(j >= 0 && j < end());
    const bool is_gone = j >= kept_ && j < gap_end();
    return is_gone ? nullptr : pages_[place(j)];
  }
  // Page j, which is there.
  void replace(std::int64_t j, Page* page) {
    assert((*this)[j] != nullptr);
    pages_[place(j)] = page;
  }

  // So that `count` pages may be pushed without an allocation.
  void reserve(std::int64_t count) {
    const std::size_t size = pages_.size() + static_cast<std::size_t>(count);
    if (size > pages_.capacity()) pages_.reserve(std::max(size, 2 * pages_.capacity()));
  }
  void push(Page* page) { pages_.push_back(page); }
  // Ends it at `end` ≤ end(), which is not within the gap. Calls take(page) for each page that was
  // there from `end` on, the last one first.
  template <class Take>
  void shrink(std::int64_t end, Take take) {
    const bool closes = end <= kept_;
    assert(end >= 0 && end <= this->end() && (closes || end >= gap_end()));
    for (const std::int64_t left = closes ? end : end - gap_; held() > left; pages_.pop_back()) {
      take(pages_.back());
    }
    if (closes) gap_ = 0;
  }

  // The first page that may go: all from there up to `end` ≤ end() go.
  std::int64_t gap_end() const { return kept_ + gap_; }
  void widen_gap(std::int64_t end) {
    if (end <= gap_end()) return;
    assert(end <= this->end());
    const auto first = pages_.begin() + kept_;
    pages_.erase(first, first + (end - gap_end()));
    gap_ = end - kept_;
  }

  const std::vector<Page*>& pages() const { return pages_; }

 private:
  // Where page j is, which is there.
  std::size_t place(std::int64_t j) const {
    return static_cast<std::size_t>(j < kept_ ? j : j - gap_);
  }

  std::int64_t kept_;
  std::int64_t gap_ = 0;
  std::vector<Page*> pages_;
};

}}}  // namespace heed::v0::detail
