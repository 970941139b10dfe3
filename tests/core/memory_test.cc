#include "heed/core/memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>
#include <vector>

#include "heed/attention.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"
#include "support/tensors.h"

namespace heed { namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

// Starts with no kept memory and sets a limit.
class KeptMemory : public testing::Test {
 protected:
  void SetUp() override {
    set_max_kept_memory(0);
    set_max_kept_memory(4 * kMiB);
  }
  void TearDown() override { set_max_kept_memory(usual_); }

  // Takes a block of `bytes` bytes and gives it back.
  static void* pass(std::size_t bytes) {
    const detail::MemoryBlock block = detail::take_memory(bytes);
    std::memset(block.data, 1, block.bytes);
    detail::give_back_memory(block);
    return block.data;
  }

 private:
  std::size_t usual_ = max_kept_memory();
};

TEST_F(KeptMemory, IsTakenAgain) {
  void* const first = pass(kMiB);
  EXPECT_EQ(kept_memory(), kMiB);
  const detail::MemoryBlock again = detail::take_memory(kMiB);
  EXPECT_EQ(again.data, first);
  EXPECT_EQ(kept_memory(), 0U);
  detail::give_back_memory(again);
}

TEST_F(KeptMemory, IsTakenForAnEighthLessAndNoLess) {
  void* const first = pass(9 * kMiB / 8);
  const detail::MemoryBlock less = detail::take_memory(kMiB - 1);
  EXPECT_EQ(less.bytes, kMiB - 1);
  const detail::MemoryBlock fits = detail::take_memory(kMiB);
  EXPECT_EQ(fits.data, first);
  EXPECT_EQ(fits.bytes, 9 * kMiB / 8);
  detail::give_back_memory(less);
  detail::give_back_memory(fits);
  EXPECT_EQ(kept_memory(), kMiB - 1 + 9 * kMiB / 8);
}

TEST_F(KeptMemory, IsTheYoungestOfTheSmallestThatDo) {
  const detail::MemoryBlock large = detail::take_memory(kMiB + 64);
  const detail::MemoryBlock old = detail::take_memory(kMiB);
  const detail::MemoryBlock young = detail::take_memory(kMiB);
  for (const auto& block : {old, young, large}) detail::give_back_memory(block);
  const detail::MemoryBlock first = detail::take_memory(kMiB - 64);
  const detail::MemoryBlock second = detail::take_memory(kMiB - 64);
  const detail::MemoryBlock third = detail::take_memory(kMiB - 64);
  EXPECT_EQ(first.data, young.data);
  EXPECT_EQ(second.data, old.data);
  EXPECT_EQ(third.data, large.data);
  for (const auto& block : {first, second, third}) detail::give_back_memory(block);
}

TEST_F(KeptMemory, HasALimitForWhichTheOldestGo) {
  std::vector<detail::MemoryBlock> blocks;
  for (std::size_t i = 0; i < 5; ++i) blocks.push_back(detail::take_memory(kMiB));
  for (const auto& block : blocks) detail::give_back_memory(block);
  EXPECT_EQ(kept_memory(), 4 * kMiB);
  pass(4 * kMiB);
  EXPECT_EQ(kept_memory(), 4 * kMiB);
  pass(4 * kMiB + 1);
  EXPECT_EQ(kept_memory(), 4 * kMiB);
  set_max_kept_memory(kMiB);
  EXPECT_EQ(kept_memory(), 0U);
  EXPECT_EQ(max_kept_memory(), kMiB);
}

TEST_F(KeptMemory, HasNoSmallBlocksAndNotTooMany) {
  pass(1000);
  EXPECT_EQ(kept_memory(), 0U);
  std::vector<detail::MemoryBlock> blocks;
  for (std::size_t i = 0; i < 100; ++i) blocks.push_back(detail::take_memory(32768));
  for (const auto& block : blocks) detail::give_back_memory(block);
  EXPECT_EQ(kept_memory(), 64U * 32768);
}

TEST_F(KeptMemory, BeginsACacheLine) {
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{100}, kMiB, kMiB - 3}) {
    const detail::MemoryBlock block = detail::take_memory(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data) % 64, 0U);
    detail::give_back_memory(block);
  }
}

TEST_F(KeptMemory, IsOfTensors) {
  const float* first = nullptr;
  {
    Tensor<float> tensor({256, 1024});
    tensor(3, 4) = 5;
    first = tensor.data();
    const Tensor<float> moved = std::move(tensor);
    EXPECT_EQ(moved.data(), first);
  }
  EXPECT_EQ(kept_memory(), kMiB);
  const Tensor<float> next({256, 1024});
  EXPECT_EQ(next.data(), first);
  EXPECT_EQ(next(3, 4), 0);
}

TEST_F(KeptMemory, ComputesWhatFreshMemoryComputes) {
  const Tensor<float> query = TorchGenerator(1).randn({1, 8, 128, 64});
  const Tensor<float> fresh = attention(query, query, query, {.mask = causal()});
  for (int i = 0; i < 3; ++i) {
    const Tensor<float> again = attention(query, query, query, {.mask = causal()});
    EXPECT_TRUE(testing_support::same_bits(again, fresh));
  }
}

TEST_F(KeptMemory, IsSharedByThreads) {
  std::atomic<bool> is_spoilt = false;
  const auto work = [&](char mark) {
    for (int i = 0; i < 2000; ++i) {
      const auto bytes = static_cast<std::size_t>(32768 + 64 * (i % 7));
      const detail::MemoryBlock block = detail::take_memory(bytes);
      auto* data = static_cast<char*>(block.data);
      std::memset(data, mark, 64);
      std::this_thread::yield();
      if (data[0] != mark || data[63] != mark) is_spoilt = true;
      detail::give_back_memory(block);
    }
  };
  std::vector<std::thread> threads;
  for (const char mark : {'a', 'b', 'c'}) threads.emplace_back(work, mark);
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(is_spoilt);
  EXPECT_LE(kept_memory(), 4 * kMiB);
}

TEST_F(KeptMemory, MayHaveNoLimit) {
  set_max_kept_memory(std::numeric_limits<std::size_t>::max());
  pass(kMiB);
  pass(4 * kMiB);
  pass(4 * kMiB + 1);
  EXPECT_EQ(kept_memory(), 5 * kMiB);
}

}  // namespace
}  // namespace heed
