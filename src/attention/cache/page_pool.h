// The memory of pages, and who uses which.
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
  std::int64_t index = 0;        // in its block
  std::int64_t first_group = 0;  // of its block
  std::int64_t references = 0;   // sequences that have it; 0: it is free

  PagePart<std::byte> part(std::int64_t kv_head) const;
};

// Room for a tile. Blocks that are allocated together lie as [num_kv_heads][blocks][block_bytes],
// so that the keys and values of a head over neighbouring pages are one stretch, which memory
// brings faster than what lies apart.
struct Block {
  std::byte* memory = nullptr;   // of key head 0
  std::int64_t head_stride = 0;  // in bytes
  std::array<Page, kernels::kTileKeys / kernels::kGroupKeys> pages{};
  // One bit for each page: those there are, and those that are free.
  std::uint32_t all = 0;
  std::uint32_t free = 0;
  std::size_t listed = 0;  // where its list has it
};

inline PagePart<std::byte> Page::part(std::int64_t kv_head) const {
  return {block->memory + kv_head * block->head_stride, first_group};
}

// Pages are allocated when they are first reserved, several at a time.
class PagePool {
 public:
  // Throws InvalidArgument when a number of the configuration means nothing.
  PagePool(const char* function, const KvConfig& config);

  // Gives all memory back: every page of a sequence is gone.
  void close() noexcept;
  bool is_open() const { return is_open_; }

  const KvConfig& config() const { return config_; }
  const PageLayout& layout() const { return layout_; }
  std::int64_t allocated_bytes() const { return allocated_bytes_; }
  std::int64_t used_pages() const { return used_pages_; }
  std::int64_t free_pages() const { return config_.max_pages - used_pages_; }

  // Sees to it that take() succeeds `wanted` times once `released` pages more are free. Throws
  // OutOfPages or std::bad_alloc.
  void reserve(const char* function, std::int64_t wanted, std::int64_t released = 0);
  // A page of zeros with one reference; of those that were reserved. The one behind `before`, the
  // last page of a sequence or null, if that is free; otherwise the first of a block that nobody
  // uses. So sequences that grow in turn have blocks of their own, as long as there are enough.
  Page* take(const Page* before) noexcept;
  // The same as a copy of another.
  Page* take_copy(const Page& page) noexcept;
  void release(Page* page) noexcept;

  // Zeros for one key head, in place of pages that are gone. Allocated by make_zeros().
  PagePart<const std::byte> zeros() const { return {zeros_.get(), 0}; }
  void make_zeros();

 private:
  void grow(std::int64_t wanted);
  void divide(Block& block) noexcept;
  Page* take_unwritten(const Page* before) noexcept;
  void change_free(Page& page) noexcept;
  // The list that has this block: null where none does, for all of its pages are used.
  std::vector<Block*>* list_of(const Block& block) noexcept;

  KvConfig config_;
  PageLayout layout_;
  bool is_open_ = true;
  std::vector<AlignedBytes> memory_;
  std::int64_t allocated_bytes_ = 0;
  std::int64_t allocated_pages_ = 0;
  std::int64_t used_pages_ = 0;
  std::deque<Block> blocks_;
  // Blocks of which all pages are free, of which the last one is taken first, and those of which
  // some are. Both have room for all blocks.
  std::vector<Block*> free_blocks_;
  std::vector<Block*> parted_blocks_;
  AlignedBytes zeros_;
};

}}}  // namespace heed::v0::detail
