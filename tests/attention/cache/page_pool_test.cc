// The pages that sequences get and their memory.
#include "attention/cache/page_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "heed/attention/kv_cache.h"

namespace heed { namespace {

using detail::Page;
using detail::PagePool;

constexpr const char* kFunction = "test";
constexpr std::int64_t kBlockPages = 8;  // of 16 positions

KvConfig small_pages(std::int64_t max_pages) {
  return {.num_kv_heads = 2, .head_dim = 8, .page_size = 16, .max_pages = max_pages};
}

Page* take(PagePool& pool, const Page* before) {
  pool.reserve(kFunction, 1);
  return pool.take(before);
}

TEST(PagePool, SequencesThatGrowInTurnHaveBlocksOfTheirOwn) {
  PagePool pool(kFunction, small_pages(kUnbounded));
  pool.reserve(kFunction, 4 * kBlockPages);
  std::vector<Page*> last(3);
  std::vector<const detail::Block*> blocks(3);
  for (std::int64_t i = 0; i < kBlockPages; ++i) {
    for (std::size_t s = 0; s < last.size(); ++s) {
      last[s] = take(pool, last[s]);
      if (i == 0) blocks[s] = last[s]->block;
      EXPECT_EQ(last[s]->block, blocks[s]);
      EXPECT_EQ(last[s]->index, i);
    }
  }
  EXPECT_EQ(std::set(blocks.begin(), blocks.end()).size(), blocks.size());
  EXPECT_EQ(take(pool, last[0])->index, 0);
}

TEST(PagePool, WhereNoBlockIsLeftAnyPageIsTaken) {
  constexpr std::int64_t kPages = 2 * kBlockPages;
  PagePool pool(kFunction, small_pages(kPages));
  pool.reserve(kFunction, kPages);
  std::set<Page*> taken;
  for (std::int64_t i = 0; i < kPages; ++i) taken.insert(take(pool, nullptr));
  EXPECT_EQ(static_cast<std::int64_t>(taken.size()), kPages);
  EXPECT_EQ(pool.free_pages(), 0);
  EXPECT_THROW(pool.reserve(kFunction, 1), OutOfPages);

  Page* const any = *taken.begin();
  pool.release(any);
  EXPECT_EQ(take(pool, nullptr), any);
}

TEST(PagePool, PagesThatCameBackAreTakenFromTheFirstOn) {
  PagePool pool(kFunction, small_pages(kUnbounded));
  pool.reserve(kFunction, 2 * kBlockPages);
  std::vector<Page*> pages;
  for (std::int64_t i = 0; i < 2 * kBlockPages; ++i) {
    pages.push_back(take(pool, pages.empty() ? nullptr : pages.back()));
  }
  const std::int64_t bytes = pool.allocated_bytes();
  for (auto page = pages.rbegin(); page != pages.rend(); ++page) pool.release(*page);
  EXPECT_EQ(pool.used_pages(), 0);
  const Page* before = nullptr;
  for (Page* const page : pages) {
    EXPECT_EQ(take(pool, before), page);
    before = page;
  }
  EXPECT_EQ(pool.allocated_bytes(), bytes);
}

TEST(PagePool, ALimitWithinABlockIsKept) {
  PagePool pool(kFunction, small_pages(3));
  pool.reserve(kFunction, 1);
  EXPECT_EQ(pool.allocated_bytes(), kBlockPages * pool.layout().page_bytes());
  const Page* page = nullptr;
  for (std::int64_t i = 0; i < 3; ++i) {
    page = take(pool, page);
    EXPECT_EQ(page->index, i);
  }
  EXPECT_THROW(pool.reserve(kFunction, 1), OutOfPages);
}

TEST(PagePool, EveryPageUpToALimitCanBeTaken) {
  for (const std::int64_t limit : {1, 7, 8, 9, 15, 16, 17, 31, 33, 40}) {
    PagePool pool(kFunction, small_pages(limit));
    std::set<std::pair<const detail::Block*, std::int64_t>> taken;
    for (std::int64_t i = 0; i < limit; ++i) {
      const Page* const page = take(pool, nullptr);
      taken.emplace(page->block, page->index);
    }
    EXPECT_EQ(static_cast<std::int64_t>(taken.size()), limit);
    EXPECT_THROW(pool.reserve(kFunction, 1), OutOfPages) << limit;
    EXPECT_LT(pool.allocated_bytes(), (limit + kBlockPages) * pool.layout().page_bytes());
  }
}

// Pages of one block are taken, copied and freed independently.
TEST(PagePool, APageIsZeroOrACopyAndChangesNoOther) {
  KvConfig quantised = small_pages(kUnbounded);
  quantised.key_storage = KvStorage::kInt8;
  quantised.value_storage = KvStorage::kInt4;
  PagePool pool(kFunction, quantised);
  pool.reserve(kFunction, 2 * kBlockPages);
  const auto first_byte = [&](const Page& page, std::int64_t head) {
    return pool.layout().value.group(page.part(head), 0);
  };
  const auto scale = [&](const Page& page, std::int64_t head) {
    return pool.layout().value.scales(page.part(head), 0);
  };
  Page* const first = take(pool, nullptr);
  Page* const second = take(pool, first);
  for (Page* page : {first, second}) {
    for (std::int64_t head = 0; head < 2; ++head) {
      EXPECT_EQ(*first_byte(*page, head), std::byte{0});
      const auto mark = static_cast<int>(2 * page->index + head + 1);
      *first_byte(*page, head) = static_cast<std::byte>(mark);
      *scale(*page, head) = static_cast<float>(mark);
    }
  }
  Page* const copy = pool.take_copy(*second);
  EXPECT_NE(copy->block, second->block);
  Page* const third = take(pool, second);
  for (std::int64_t head = 0; head < 2; ++head) {
    EXPECT_EQ(std::to_integer<int>(*first_byte(*first, head)), head + 1);
    EXPECT_EQ(std::to_integer<int>(*first_byte(*copy, head)), head + 3);
    EXPECT_EQ(*scale(*copy, head), static_cast<float>(head + 3));
    EXPECT_EQ(*first_byte(*third, head), std::byte{0});
    EXPECT_EQ(*scale(*third, head), 0);
  }
  pool.release(second);
  EXPECT_EQ(*first_byte(*take(pool, first), 0), std::byte{0});
}

}  // namespace
}  // namespace heed
