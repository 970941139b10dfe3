#include "attention/cache/page_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "attention/kernels/stored_tile.h"
#include "heed/error.h"

namespace heed::inline v0::detail {

namespace {

// What is allocated at once grows with what there is, up to this.
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

// All that one key head has of a page: groups of keys and of values, and their scales.
std::array<Stretch, 4> stretches(const PageLayout& layout, PagePart<std::byte> part) {
  const auto stretch = [&](std::int64_t first, std::int64_t bytes) {
    return Stretch{part.block + first + part.first_group * bytes,
                   static_cast<std::size_t>(layout.page_groups() * bytes)};
  };
  return {stretch(layout.key.first_group, layout.key.group_bytes),
          stretch(layout.value.first_group, layout.value.group_bytes),
          stretch(layout.key.first_scale, layout.key.scale_bytes),
          stretch(layout.value.first_scale, layout.value.scale_bytes)};
}

}  // namespace

PagePool::PagePool(const char* function, const KvConfig& config)
    : config_(checked(function, config)), layout_(config_) {}

void PagePool::close() noexcept {
  is_open_ = false;
  free_.clear();
  pages_.clear();
  memory_.clear();
  allocated_bytes_ = 0;
  zeros_.reset();
}

void PagePool::reserve(const char* function, std::int64_t wanted, std::int64_t released) {
  const std::int64_t free = free_pages() + released;
  if (wanted > free) throw OutOfPages(function, wanted, free, config_.max_pages);
  const std::int64_t missing = wanted - released - static_cast<std::int64_t>(free_.size());
  if (missing > 0) grow(missing);
}

void PagePool::grow(std::int64_t wanted) {
  const std::int64_t at_once = std::min(allocated_pages(), kMostBytesAtOnce / layout_.page_bytes());
  const std::int64_t block_pages = layout_.block_pages();
  const std::int64_t blocks = (std::max(wanted, at_once) + block_pages - 1) / block_pages;
  const std::int64_t count =
      std::min(checked_multiply(blocks, block_pages), config_.max_pages - allocated_pages());
  free_.reserve(pages_.size() + static_cast<std::size_t>(count));
  memory_.reserve(memory_.size() + 1);
  const std::int64_t head_stride = checked_multiply(blocks, layout_.block_bytes);
  const std::int64_t bytes = checked_multiply(layout_.num_kv_heads, head_stride);
  AlignedBytes memory = allocate_in_huge_pages(static_cast<std::size_t>(bytes));
  std::byte* const first = memory.get();
  memory_.push_back(std::move(memory));
  allocated_bytes_ += bytes;
  // What is left of earlier ones is taken first.
  auto at = free_.begin();
  for (std::int64_t i = count - 1; i >= 0; --i) {
    std::byte* const block = first + i / block_pages * layout_.block_bytes;
    pages_.push_back({{block, i % block_pages * layout_.page_groups()}, head_stride, 0});
    at = free_.insert(at, &pages_.back()) + 1;
  }
}

Page* PagePool::take_unwritten() noexcept {
  Page* const page = free_.back();
  free_.pop_back();
  page->references = 1;
  return page;
}

Page* PagePool::take() noexcept {
  Page* const page = take_unwritten();
  for (std::int64_t h = 0; h < layout_.num_kv_heads; ++h) {
    for (const Stretch& stretch : stretches(layout_, page->part(h))) {
      std::memset(stretch.begin, 0, stretch.bytes);
    }
  }
  return page;
}

Page* PagePool::take_copy(const Page& page) noexcept {
  Page* const copy = take_unwritten();
  for (std::int64_t h = 0; h < layout_.num_kv_heads; ++h) {
    const auto from = stretches(layout_, page.part(h));
    const auto to = stretches(layout_, copy->part(h));
    for (std::size_t i = 0; i < to.size(); ++i)
      std::memcpy(to[i].begin, from[i].begin, to[i].bytes);
  }
  return copy;
}

void PagePool::release(Page* page) noexcept {
  if (--page->references == 0) free_.push_back(page);
}

void PagePool::make_zeros() {
  if (zeros_ != nullptr) return;
  const auto size = static_cast<std::size_t>(layout_.block_bytes);
  zeros_ = allocate_in_huge_pages(size);
  std::memset(zeros_.get(), 0, size);
}

}  // namespace heed::inline v0::detail
