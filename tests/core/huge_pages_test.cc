#include "core/huge_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace heed { namespace {

// Advice for part of a block, of any alignment and size, changes no byte in or around it.
TEST(HugePages, ChangeNoBytes) {
  std::vector<char> memory(std::size_t{10} << 20, 7);
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{5} << 20, memory.size() - 3}) {
    prefer_huge_pages(memory.data() + 3, bytes);
  }
  EXPECT_TRUE(std::all_of(memory.begin(), memory.end(), [](char byte) { return byte == 7; }));
}

TEST(HugePages, MemoryBeginsWhereItsPagesDo) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, kHugePage - 1, kHugePage, 3 * kHugePage + 5}) {
    const AlignedBytes memory = allocate_in_huge_pages(bytes);
    std::fill_n(memory.get(), bytes, std::byte{7});
    const auto at = reinterpret_cast<std::uintptr_t>(memory.get());
    EXPECT_EQ(at % (bytes < kHugePage ? 64 : kHugePage), 0U) << bytes;
  }
}

}  // namespace
}  // namespace heed
