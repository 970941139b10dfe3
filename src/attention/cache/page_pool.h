// The memory of pages, and who uses which.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "attention/cache/page_layout.h"
#include "core/huge_pages.h"
#include "heed/kv_cache.h"

namespace heed::inline v0::detail {

// Blocks that are allocated together lie as [num_kv_heads][blocks][block_bytes], so that the keys
// and values of a head over neighbouring pages are one stretch, which memory brings faster than
// what lies apart.
struct Page {
  PagePart<std::byte> first_part;  // that of key head 0
  std::int64_t head_stride = 0;    // in bytes
  std::int64_t references = 0;     // sequences that have it; 0: it is free

  PagePart<std::byte> part(std::int64_t kv_head) const {
    return {first_part.block + kv_head * head_stride, first_part.first_group};
  }
};

// Pages are allocated when they are first reserved, several at a time, and taken in the order in
// which they lie.
class PagePool {
 public:
  // Throws InvalidArgument when a number of the configuration means nothing.
  PagePool(const char* function, const KvConfig& config);

  // Gives all memory back: every page of a sequence is gone.
  void close() noexcept;
  bool is_open() const { return is_open_; }

  const KvConfig& config() const { return config_; }
  const PageLayout& layout() const { return layout_; }
  std::int64_t allocated_pages() const { return static_cast<std::int64_t>(pages_.size()); }
  std::int64_t allocated_bytes() const { return allocated_bytes_; }
  std::int64_t used_pages() const {
    return allocated_pages() - static_cast<std::int64_t>(free_.size());
  }
  std::int64_t free_pages() const { return config_.max_pages - used_pages(); }

  // Sees to it that take() succeeds `wanted` times once `released` pages more are free. Throws
  // OutOfPages or std::bad_alloc.
  void reserve(const char* function, std::int64_t wanted, std::int64_t released = 0);
  // A page of zeros with one reference; of those that were reserved.
  Page* take() noexcept;
  // The same as a copy of another.
  Page* take_copy(const Page& page) noexcept;
  void release(Page* page) noexcept;

  // Zeros for one key head, in place of pages that are gone. Allocated by make_zeros().
  PagePart<const std::byte> zeros() const { return {zeros_.get(), 0}; }
  void make_zeros();

 private:
  void grow(std::int64_t wanted);
  Page* take_unwritten() noexcept;

  KvConfig config_;
  PageLayout layout_;
  bool is_open_ = true;
  std::vector<AlignedBytes> memory_;
  std::int64_t allocated_bytes_ = 0;
  std::deque<Page> pages_;
  std::vector<Page*> free_;  // the last one is taken first; has room for all pages
  AlignedBytes zeros_;
};

}  // namespace heed::inline v0::detail
