#include "attention/cache/page_pool.h"

#include <fmt/format.h>

#include <algorithm>
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

}  // namespace

PagePool::PagePool(const char* function, const KvConfig& config)
    : config_(checked(function, config)), layout_(config_) {}

void PagePool::close() noexcept {
  is_open_ = false;
  free_.clear();
  pages_.clear();
  memory_.clear();
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
  const std::int64_t count =
      std::max(wanted, std::min(at_once, config_.max_pages - allocated_pages()));
  free_.reserve(pages_.size() + static_cast<std::size_t>(count));
  memory_.reserve(memory_.size() + 1);
  const std::int64_t bytes = checked_multiply(count, layout_.page_bytes());
  AlignedBytes memory = allocate_in_huge_pages(static_cast<std::size_t>(bytes));
  std::byte* const first = memory.get();
  memory_.push_back(std::move(memory));
  // What is left of earlier ones is taken first.
  auto at = free_.begin();
  for (std::int64_t i = count - 1; i >= 0; --i) {
    pages_.push_back({first + i * layout_.part_bytes, count * layout_.part_bytes, 0});
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
    std::memset(page->part(h), 0, static_cast<std::size_t>(layout_.part_bytes));
  }
  return page;
}

Page* PagePool::take_copy(const Page& page) noexcept {
  Page* const copy = take_unwritten();
  for (std::int64_t h = 0; h < layout_.num_kv_heads; ++h) {
    std::memcpy(copy->part(h), page.part(h), static_cast<std::size_t>(layout_.part_bytes));
  }
  return copy;
}

void PagePool::release(Page* page) noexcept {
  if (--page->references == 0) free_.push_back(page);
}

void PagePool::make_zeros() {
  if (zeros_ != nullptr) return;
  const auto size = static_cast<std::size_t>(layout_.part_bytes);
  zeros_ = allocate_in_huge_pages(size);
  std::memset(zeros_.get(), 0, size);
}

}  // namespace heed::inline v0::detail
