// The memory of pages, and the numbers of their references.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "attention/cache/page_layout.h"
#include "core/huge_pages.h"
#include "heed/attention/kv_cache.h"

namespace heed { inline namespace v0 { namespace detail {

struct Block;

struct Page {
  Block* block = nullptr;
  std::int64_t index = 0;        // within its block
  std::int64_t first_group = 0;  // within its block
  std::int64_t references = 0;   // the number of sequences that have the page; 0 if it is free

  PagePart<std::byte> part(std::int64_t kv_head) const;
};

// Room for a tile. The memory of blocks that are allocated together is
// [num_kv_heads][blocks][block_bytes], so that the keys and values of a head in neighbouring pages
// are contiguous, which is faster to read.
struct Block {
  std::byte* memory = nullptr;   // of key head 0
  std::int64_t head_stride = 0;  // in bytes
  std::array<Page, kernels::kTileKeys / kernels::kGroupKeys> pages{};
  // A bit for each page: the pages of this block, and those of them that are free.
  std::uint32_t all = 0;
  std::uint32_t free = 0;
  std::size_t listed = 0;  // the index in its list
};

inline PagePart<std::byte> Page::part(std::int64_t kv_head) const {
  return {block->memory + kv_head * block->head_stride, first_group};
}

// Pages are allocated when they are first reserved, several at a time.
class PagePool {
 public:
  // Throws InvalidArgument if a number of the configuration is invalid.
  PagePool(const char* function, const KvConfig& config);

  // Frees all memory; the pages of sequences are then invalid.
  void close() noexcept;
  bool is_open() const { return is_open_; }

  const KvConfig& config() const { return config_; }
  const PageLayout& layout() const { return layout_; }
  std::int64_t allocated_bytes() const { return allocated_bytes_; }
  std::int64_t used_pages() const { return used_pages_; }
  std::int64_t free_pages() const { return config_.max_pages - used_pages_; }

  // Ensures that take() succeeds `wanted` times once `released` more pages are free. Throws
  // OutOfPages or std::bad_alloc.
  void reserve(const char* function, std::int64_t wanted, std::int64_t released = 0);
  // Returns a reserved page, filled with zeros, with one reference. `before` is the last page of a
  // sequence or null. Takes the page after it, if that is free, or else the first page of an unused
  // block, so that sequences that grow in turn have blocks of their own while there are enough.
  Page* take(const Page* before) noexcept;
  // Returns a reserved page that is a copy of `page`.
  Page* take_copy(const Page& page) noexcept;
  void release(Page* page) noexcept;

  // Zeros for one key head, in place of pages that were dropped. Allocated by make_zeros().
  PagePart<const std::byte> zeros() const { return {zeros_.get(), 0}; }
  void make_zeros();

 private:
  void grow(std::int64_t wanted);
  void divide(Block& block) noexcept;
  Page* take_unwritten(const Page* before) noexcept;
  void change_free(Page& page) noexcept;
  // The list that has this block; null if it is in none, as all of its pages are used.
  std::vector<Block*>* list_of(const Block& block) noexcept;

  KvConfig config_;
  PageLayout layout_;
  bool is_open_ = true;
  std::vector<AlignedBytes> memory_;
  std::int64_t allocated_bytes_ = 0;
  std::int64_t allocated_pages_ = 0;
  std::int64_t used_pages_ = 0;
  std::deque<Block> blocks_;
  // The blocks whose pages are all free, the last of which is taken first, and those that have some
  // free pages. Both lists have room for all blocks.
  std::vector<Block*> free_blocks_;
  std::vector<Block*> parted_blocks_;
  AlignedBytes zeros_;
};

}}}  // namespace heed::v0::detail
