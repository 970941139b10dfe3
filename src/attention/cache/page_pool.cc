#include "attention/cache/page_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "attention/kernels/decode/stored_tile.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace detail {

namespace {

// Each allocation is as large as all earlier ones together, up to this limit.
constexpr std::int64_t kMostBytesAtOnce = std::int64_t{32} << 20;

void check(const char* function, const char* name, std::int64_t found, std::int64_t least,
           std::int64_t most) {
  if (found >= least && found <= most) return;
  throw InvalidArgument(
      most == kUnbounded
          ? fmt::format("{}: {} is {}, expected at least {}", function, name, found, least)
          : fmt::format("{}: {} is {}, expected {} to {}", function, name, found, least, most));
}

KvConfig checked(const char* function, KvConfig config) {
  config.value_dim = config.value_dim.value_or(config.head_dim);
  check(function, "num_kv_heads", config.num_kv_heads, 1, kUnbounded);
  check(function, "head_dim", config.head_dim, 1, kernels::kMaxDim);
  check(function, "value_dim", *config.value_dim, 1, kernels::kMaxDim);
  check(function, "max_pages", config.max_pages, 0, kUnbounded);
  const std::int64_t size = config.page_size;
  if (size < kernels::kGroupKeys || size > kernels::kTileKeys || (size & (size - 1)) != 0) {
    throw InvalidArgument(
        fmt::format("{}: page_size is {}, expected 16, 32, 64 or 128", function, size));
  }
  return config;
}

struct Stretch {
  std::byte* begin;
  std::size_t bytes;
};

// The memory of one key head in a page: groups of keys and of values, and their scales.
std::array<Stretch, 4> stretches(const PageLayout& layout, PagePart<std::byte> part) {
  const auto stretch = [&](std::int64_t first, std::int64_t bytes) {
    return Stretch{part.block + first + part.first_group * bytes,
                   static_cast<std::size_t>(layout.page_groups() * bytes)};
  };
  return {stretch(layout.key.groups_at, layout.key.group_bytes),
          stretch(layout.value.groups_at, layout.value.group_bytes),
          stretch(layout.key.scales_at, layout.key.scale_bytes),
          stretch(layout.value.scales_at, layout.value.scale_bytes)};
}

}  // namespace

PagePool::PagePool(const char* function, const KvConfig& config)
    : config_(checked(function, config)), layout_(config_) {}

void PagePool::close() noexcept {
  is_open_ = false;
  free_blocks_.clear();
  parted_blocks_.clear();
  blocks_.clear();
  memory_.clear();
  allocated_bytes_ = allocated_pages_ = used_pages_ = 0;
  zeros_.reset();
}

void PagePool::reserve(const char* function, std::int64_t wanted, std::int64_t released) {
  const std::int64_t free = free_pages() + released;
  if (wanted > free) throw OutOfPages(function, wanted, free, config_.max_pages);
  const std::int64_t missing = wanted - released - (allocated_pages_ - used_pages_);
  if (missing > 0) grow(missing);
}

void PagePool::grow(std::int64_t wanted) {
  const std::int64_t at_once = std::min(allocated_pages_, kMostBytesAtOnce / layout_.page_bytes());
  const std::int64_t pages =
      std::max(wanted, std::min(at_once, config_.max_pages - allocated_pages_));
  const std::int64_t count = (pages - 1) / layout_.block_pages() + 1;
  const std::int64_t head_stride = checked_multiply(count, layout_.block_bytes);
  const std::int64_t bytes = checked_multiply(layout_.num_kv_heads, head_stride);
  const std::size_t before = blocks_.size();
  free_blocks_.reserve(before + static_cast<std::size_t>(count));
  parted_blocks_.reserve(before + static_cast<std::size_t>(count));
  memory_.reserve(memory_.size() + 1);
  AlignedBytes memory = allocate_in_huge_pages(static_cast<std::size_t>(bytes));
  blocks_.resize(before + static_cast<std::size_t>(count));
  // Nothing after this point throws.
  for (std::int64_t i = 0; i < count; ++i) {
    Block& block = blocks_[before + static_cast<std::size_t>(i)];
    block.memory = memory.get() + i * layout_.block_bytes;
    block.head_stride = head_stride;
    divide(block);
  }
  memory_.push_back(std::move(memory));
  allocated_bytes_ += bytes;
  // Free blocks from earlier allocations are taken first.
  free_blocks_.insert(free_blocks_.begin(), static_cast<std::size_t>(count), nullptr);
  for (std::size_t i = 0; before + i < blocks_.size(); ++i) {
    free_blocks_[i] = &blocks_[blocks_.size() - 1 - i];
  }
  for (std::size_t i = 0; i < free_blocks_.size(); ++i) free_blocks_[i]->listed = i;
}

// Divides a block into pages, up to the maximum number of pages.
void PagePool::divide(Block& block) noexcept {
  const std::int64_t count = std::min(layout_.block_pages(), config_.max_pages - allocated_pages_);
  for (std::int64_t i = 0; i < count; ++i) {
    block.pages[static_cast<std::size_t>(i)] = {&block, i, i * layout_.page_groups()};
  }
  block.all = block.free = (1U << count) - 1;
  allocated_pages_ += count;
}

std::vector<Block*>* PagePool::list_of(const Block& block) noexcept {
  if (block.free == 0) return nullptr;
  return block.free == block.all ? &free_blocks_ : &parted_blocks_;
}

void PagePool::change_free(Page& page) noexcept {
  Block& block = *page.block;
  if (auto* const list = list_of(block)) {
    list->back()->listed = block.listed;
    (*list)[block.listed] = list->back();
    list->pop_back();
  }
  block.free ^= 1U << page.index;
  if (auto* const list = list_of(block)) {
    block.listed = list->size();
    list->push_back(&block);
  }
}

Page* PagePool::take_unwritten(const Page* before) noexcept {
  Block* block = nullptr;
  int index = 0;
  if (before != nullptr && (before->block->free >> (before->index + 1) & 1) != 0) {
    block = before->block;
    index = static_cast<int>(before->index + 1);
  } else {
    block = free_blocks_.empty() ? parted_blocks_.front() : free_blocks_.back();
    index = std::countr_zero(block->free);
  }
  Page& page = block->pages[static_cast<std::size_t>(index)];
  change_free(page);
  page.references = 1;
  ++used_pages_;
  return &page;
}

Page* PagePool::take(const Page* before) noexcept {
  Page* const page = take_unwritten(before);
  for (std::int64_t h = 0; h < layout_.num_kv_heads; ++h) {
    for (const Stretch& stretch : stretches(layout_, page->part(h))) {
      std::memset(stretch.begin, 0, stretch.bytes);
    }
  }
  return page;
}

Page* PagePool::take_copy(const Page& page) noexcept {
  Page* const copy = take_unwritten(nullptr);
  for (std::int64_t h = 0; h < layout_.num_kv_heads; ++h) {
    const auto from = stretches(layout_, page.part(h));
    const auto to = stretches(layout_, copy->part(h));
    for (std::size_t i = 0; i < to.size(); ++i) {
      std::memcpy(to[i].begin, from[i].begin, to[i].bytes);
    }
  }
  return copy;
}

void PagePool::release(Page* page) noexcept {
  if (--page->references > 0) return;
  change_free(*page);
  --used_pages_;
}

void PagePool::make_zeros() {
  if (zeros_ != nullptr) return;
  const auto size = static_cast<std::size_t>(layout_.block_bytes);
  zeros_ = allocate_in_huge_pages(size);
  std::memset(zeros_.get(), 0, size);
}

}}}  // namespace heed::v0::detail
