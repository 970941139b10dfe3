// Caches when memory runs out: whichever allocation fails, the call fails and changes nothing.
#include <gtest/gtest.h>

#include <new>
#include <vector>

#include "heed/attention/kv_cache.h"
#include "support/heap.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::normal;
using testing_support::same_bits;

constexpr KvConfig kConfig{.num_kv_heads = 2, .head_dim = 8, .page_size = 16};

// Calls `call` on a new pool with two sequences that share pages, with one failing allocation after
// the other, until none fails.
template <class Call>
void expect_all_or_nothing(const KvConfig& config, const Call& call) {
  const auto tokens = normal<float>({2, 40, 8}, 1);
  for (std::int64_t index = 0;; ++index) {
    ASSERT_LT(index, 100);
    KvPool pool(config);
    KvSequence first(pool);
    first.append(tokens, tokens);
    KvSequence second = first.fork(35);
    const auto before = second.dequantised();
    const std::int64_t in_use = pool.pages_in_use();
    bool has_failed = false;
    {
      const testing_support::AllocationFault fault(index);
      try {
        call(second);
      } catch (const std::bad_alloc&) {
        has_failed = true;
      }
      if (!fault.has_happened()) return;
    }
    ASSERT_TRUE(has_failed) << index;
    EXPECT_EQ(second.length(), 35);
    EXPECT_EQ(pool.pages_in_use(), in_use);
    const auto after = second.dequantised();
    EXPECT_TRUE(same_bits(after.key, before.key));
    EXPECT_TRUE(same_bits(after.value, before.value));
    EXPECT_TRUE(same_bits(first.dequantised().key, tokens));
    second.append(tokens, tokens);
    EXPECT_EQ(second.length(), 75);
  }
}

TEST(KvCacheAllocations, OfAnAppend) {
  const auto tokens = normal<float>({2, 500, 8}, 2);
  expect_all_or_nothing(kConfig, [&](KvSequence& sequence) { sequence.append(tokens, tokens); });
}

TEST(KvCacheAllocations, OfAFork) {
  expect_all_or_nothing(kConfig, [](KvSequence& sequence) { KvSequence fork = sequence.fork(20); });
}

TEST(KvCacheAllocations, OfAccept) {
  const std::vector<std::int64_t> path{3, 20, 21};
  expect_all_or_nothing(kConfig, [&](KvSequence& sequence) { sequence.accept(30, path); });
}

TEST(KvCacheAllocations, OfAttend) {
  const auto query = normal<float>({1, 2, 3, 8}, 2);
  expect_all_or_nothing(kConfig, [&](KvSequence& sequence) { attend(query, sequence); });
}

TEST(KvCacheAllocations, OfAttendToASharedPrefix) {
  const auto tokens = normal<float>({2, 1030, 8}, 2);
  const auto query = normal<float>({2, 2, 8}, 3);
  const std::vector<std::int64_t> boundaries{0, 1, 2};
  KvPool pool(kConfig);
  KvSequence first(pool);
  first.append(tokens, tokens);
  const KvSequence second = first.fork(1028);
  const KvSequence* const both[] = {&first, &second};
  const auto attend_to_both = [&] { return attend(query, KvBatch{both, boundaries}); };
  const auto expected = attend_to_both();
  for (std::int64_t index = 0;; ++index) {
    ASSERT_LT(index, 200);
    {
      const testing_support::AllocationFault fault(index);
      try {
        attend_to_both();
      } catch (const std::bad_alloc&) {
        continue;
      }
      if (!fault.has_happened()) break;
    }
    ADD_FAILURE() << "nobody noticed that allocation " << index << " failed";
  }
  EXPECT_TRUE(same_bits(attend_to_both(), expected));
}

}  // namespace
}  // namespace heed
