// The pages of a sequence.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "attention/cache/page_pool.h"

namespace heed { inline namespace v0 { namespace detail {

// The pages of a sequence by number: page j has the positions from j · page_size on. The first
// `kept` pages stay; after them there may be a gap of pages that were dropped, so that memory
// depends only on the number of pages present. References are not counted here.
//
// Invariants: if there is a gap, all of the first pages are present, and end() ≥ gap_end(). There
// may be no page after the gap, as after a rewind to its end; the gap remains, as new pages are
// numbered from its end. It is closed only when a page before it is removed.
class PageTable {
 public:
  explicit PageTable(std::int64_t kept = 0) : kept_(kept) {}

  // One more than the number of the last page, present or dropped.
  std::int64_t end() const { return held() + gap_; }
  // The number of pages present.
  std::int64_t held() const { return static_cast<std::int64_t>(pages_.size()); }

  // Page j < end(); null if it was dropped.
  Page* operator[](std::int64_t j) const {
    assert(j >= 0 && j < end());
    const bool is_gone = j >= kept_ && j < gap_end();
    return is_gone ? nullptr : pages_[place(j)];
  }
  // Replaces page j, which must be present.
  void replace(std::int64_t j, Page* page) {
    assert((*this)[j] != nullptr);
    pages_[place(j)] = page;
  }

  // Makes room to push `count` pages without an allocation.
  void reserve(std::int64_t count) {
    const std::size_t size = pages_.size() + static_cast<std::size_t>(count);
    if (size > pages_.capacity()) pages_.reserve(std::max(size, 2 * pages_.capacity()));
  }
  void push(Page* page) { pages_.push_back(page); }
  // Removes the pages from `end` on; `end` ≤ end(), and not within the gap. Calls take(page) for
  // each page that was present, the last one first.
  template <class Take>
  void shrink(std::int64_t end, Take take) {
    const bool closes = end <= kept_;
    assert(end >= 0 && end <= this->end() && (closes || end >= gap_end()));
    for (const std::int64_t left = closes ? end : end - gap_; held() > left; pages_.pop_back()) {
      take(pages_.back());
    }
    if (closes) gap_ = 0;
  }

  // The number of the first page that may be dropped. widen_gap() drops all pages from there to
  // `end` ≤ end().
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
  // The index of page j, which must be present.
  std::size_t place(std::int64_t j) const {
    return static_cast<std::size_t>(j < kept_ ? j : j - gap_);
  }

  std::int64_t kept_;
  std::int64_t gap_ = 0;
  std::vector<Page*> pages_;
};

}}}  // namespace heed::v0::detail
