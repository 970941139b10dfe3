// Sequences that share their first pages: each shared page is read once, and each sequence gets the
// bits that it gets alone.
#include "attention/cache/shared_states.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "heed/attention/kv_cache.h"
#include "heed/attention/plan.h"
#include "heed/core/cancellation.h"
#include "heed/core/parallel.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::converted;
using testing_support::normal;
using testing_support::same_bits;

struct PrefixSizes {
  std::int64_t num_heads = 2;
  std::int64_t num_kv_heads = 2;
  std::int64_t head_dim = 24;
  std::int64_t value_dim = 40;
  KvStorage storage = KvStorage::kFloat32;
  std::int64_t page_size = 128;
};

class Threads {
 public:
  explicit Threads(int count) : before_(num_threads()) { set_num_threads(count); }
  ~Threads() { set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

class CountedPolls final : public Cancellation {
 public:
  void poll() noexcept override { ++count_; }
  std::int64_t count() const { return count_; }

 private:
  std::atomic<std::int64_t> count_ = 0;
};

// Sequences of one pool, some forked from others.
class Family {
 public:
  explicit Family(const PrefixSizes& sizes)
      : sizes_(sizes),
        pool_({.num_kv_heads = sizes.num_kv_heads,
               .head_dim = sizes.head_dim,
               .value_dim = sizes.value_dim,
               .key_storage = sizes.storage,
               .value_storage = sizes.storage,
               .page_size = sizes.page_size}) {}

  // Adds a sequence with `own` positions.
  std::size_t add(std::int64_t own, const KvBounds& bounds = {}) {
    sequences_.emplace_back(pool_, bounds);
    return extend(own);
  }
  // Adds a fork of the first `shared` positions of another sequence, with `own` more.
  std::size_t fork(std::size_t parent, std::int64_t shared, std::int64_t own) {
    sequences_.push_back(sequences_[parent].fork(shared));
    return extend(own);
  }
  KvSequence& operator[](std::size_t i) { return sequences_[i]; }
  std::size_t size() const { return sequences_.size(); }

  // Returns numbers to append, [num_kv_heads, n, dim].
  Tensor<float> keys(std::int64_t n) {
    return normal<float>({sizes_.num_kv_heads, n, sizes_.head_dim}, ++seed_);
  }
  Tensor<float> values(std::int64_t n) {
    return normal<float>({sizes_.num_kv_heads, n, sizes_.value_dim}, ++seed_);
  }

  // Attends with counts[i] queries of sequence i; with none for missing counts.
  template <class T = float>
  void expect_bits_of_each_alone(std::vector<std::int64_t> counts,
                                 const AttentionOptions& options = {.mask = causal()}) {
    counts.resize(sequences_.size());
    const Batch batch(sequences_, counts);
    const auto query = converted<T>(queries(batch));
    const auto found = attend_with_lse(query, batch.get(), options);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const std::int64_t begin = batch.boundaries[i];
      const std::int64_t end = batch.boundaries[i + 1];
      const auto mine = [&](const auto& packed) {
        return to_tensor(packed.view().slice(0, begin, end).permute({1, 0, 2}).to_rank(4));
      };
      const auto mine_of_lse = [&](const auto& packed) {
        return to_tensor(packed.view().slice(1, begin, end).to_rank(3));
      };
      const auto alone = attend_with_lse(mine(query), sequences_[i], options);
      EXPECT_TRUE(same_bits(mine(found.out), alone.out)) << "sequence " << i;
      EXPECT_TRUE(same_bits(mine_of_lse(found.lse), alone.lse)) << "sequence " << i;
      EXPECT_TRUE(same_bits(mine_of_lse(found.lse_low), alone.lse_low)) << "sequence " << i;
    }
  }

  // Returns the tiles of keys that one thread reads for one query per sequence, counted by its
  // polls, of which few have other reasons.
  std::int64_t tiles_read(const AttentionOptions& options = {.mask = causal()},
                          std::int64_t queries_of_each = 1) {
    const Threads one(1);
    const Batch batch(sequences_, std::vector<std::int64_t>(sequences_.size(), queries_of_each));
    const auto query = queries(batch);
    CountedPolls polls;
    const CancellationScope scope(&polls);
    attend(query, batch.get(), options);
    return polls.count();
  }

 private:
  struct Batch {
    Batch(const std::vector<KvSequence>& sequences, const std::vector<std::int64_t>& counts) {
      for (std::size_t i = 0; i < sequences.size(); ++i) {
        handles.push_back(&sequences[i]);
        boundaries.push_back(boundaries.back() + counts[i]);
      }
    }
    KvBatch get() const { return {handles, boundaries}; }

    std::vector<const KvSequence*> handles;
    std::vector<std::int64_t> boundaries{0};
  };

  std::size_t extend(std::int64_t own) {
    const auto key = keys(own);
    const auto value = values(own);
    const std::int64_t most = sequences_.back().bounds().max_append;
    const bool is_bounded = sequences_.back().bounds().window != kUnbounded;
    const std::int64_t step = is_bounded ? most : std::max<std::int64_t>(own, 1);
    for (std::int64_t at = 0; at < own; at += step) {
      const std::int64_t end = std::min(at + step, own);
      sequences_.back().append(key.view().slice(1, at, end), value.view().slice(1, at, end));
    }
    return sequences_.size() - 1;
  }
  Tensor<float> queries(const Batch& batch) {
    return normal<float>({batch.boundaries.back(), sizes_.num_heads, sizes_.head_dim}, ++seed_);
  }

  PrefixSizes sizes_;
  KvPool pool_;
  std::vector<KvSequence> sequences_;
  std::uint32_t seed_ = 0;
};

// The first sequence has the prefix only.
Family siblings(const PrefixSizes& sizes, std::int64_t count, std::int64_t prefix,
                std::int64_t own) {
  Family family(sizes);
  family.add(prefix);
  for (std::int64_t i = 1; i < count; ++i) family.fork(0, prefix, own + i);
  return family;
}

TEST(KvCacheSharing, GroupsOfEverySizeHaveTheBitsOfEachAlone) {
  for (const std::int64_t count : {2, 3, 16}) {
    for (const std::int64_t prefix : {1023, 1024, 1025, 2500, 4096}) {
      SCOPED_TRACE(std::to_string(count) + " sequences that share " + std::to_string(prefix));
      Family family = siblings({.page_size = prefix % 2 == 0 ? 16 : 64}, count, prefix, 30);
      for (const int threads : {1, 2, 3, 5}) {
        SCOPED_TRACE(threads);
        const Threads some(threads);
        family.expect_bits_of_each_alone(std::vector<std::int64_t>(family.size(), 1));
      }
    }
  }
}

TEST(KvCacheSharing, EveryStorageAndGroupsOfHeads) {
  for (const KvStorage storage : {KvStorage::kFloat32, KvStorage::kFloat16, KvStorage::kBFloat16,
                                  KvStorage::kInt8, KvStorage::kInt4}) {
    for (const std::int64_t num_heads : {1, 4, 13}) {
      SCOPED_TRACE(std::to_string(static_cast<int>(storage)) + " of " + std::to_string(num_heads));
      Family family = siblings({.num_heads = num_heads,
                                .num_kv_heads = 1,
                                .head_dim = 33,
                                .value_dim = 17,
                                .storage = storage,
                                .page_size = 32},
                               5, 2048 + 7, 150);
      for (const int threads : {1, 3}) {
        const Threads some(threads);
        family.expect_bits_of_each_alone(std::vector<std::int64_t>(family.size(), 1));
        family.expect_bits_of_each_alone<Float16>({1, 2, 1, 0, 3});
      }
    }
  }
}

TEST(KvCacheSharing, GroupsWithinGroupsAndSequencesAlone) {
  Family family({.page_size = 32});
  const auto system = family.add(1100);
  const auto chat = family.fork(system, 1100, 1000);
  family.add(1500);
  const auto other_chat = family.fork(system, 1090, 2100);
  family.fork(chat, 2100, 5);
  const auto other = family.add(3000);
  family.fork(other_chat, 3190, 1);
  family.fork(other, 2048, 900);
  family.fork(chat, 2050, 1);
  family.add(3);
  family.fork(other_chat, 3072, 1024);
  for (const int threads : {1, 2, 3, 5}) {
    SCOPED_TRACE(threads);
    const Threads some(threads);
    family.expect_bits_of_each_alone({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1});
    family.expect_bits_of_each_alone({2, 1, 7, 5, 1, 0, 3, 1, 20, 3, 4});
    // Some sequences have queries that fill panels or are in the prefix.
    family.expect_bits_of_each_alone({1, 60, 100, 1, 1, 1, 200, 70, 5, 1, 1030});
  }
}

TEST(KvCacheSharing, TheSameSequenceTwice) {
  Family family({});
  family.add(1300);
  const KvSequence* twice[] = {&family[0], &family[0]};
  const std::int64_t boundaries[] = {0, 1, 3};
  const auto query = normal<float>({3, 2, 24}, 5);
  const auto found = attend(query, KvBatch{twice, boundaries}, {.mask = causal()});
  for (int i = 0; i < 2; ++i) {
    const auto rows = [&](const auto& packed) {
      return to_tensor(
          packed.view().slice(0, boundaries[i], boundaries[i + 1]).permute({1, 0, 2}).to_rank(4));
    };
    EXPECT_TRUE(same_bits(rows(found), attend(rows(query), family[0], {.mask = causal()})));
  }
}

// Options under which prefixes are shared, and options under which they are not.
std::vector<AttentionOptions> all_options(const Tensor<float>& slopes, const Tensor<float>& sinks) {
  std::vector<AttentionOptions> all(12, {.mask = causal()});
  all[0].mask = Mask();
  all[1].mask = causal_bottom_right();
  all[2].sinks = sinks;
  all[3].scale = 0.7F;
  all[4].mask = sliding_window(1500, 0);
  all[5].mask = sliding_window(100, 0);
  all[6].mask = key_lengths({1100});
  all[7].mask = causal() & Mask::where([](auto, auto, auto q, auto k) { return (q + k) % 3 != 0; });
  all[8].alibi_slopes = slopes;
  all[9].softcap = 4;
  all[10].dropout = {.probability = 0.3F, .seed = 5};
  all[11].mask = documents({0, 600, 2300});
  return all;
}

TEST(KvCacheSharing, EveryMaskAndTermHasTheBitsOfEachAlone) {
  const auto slopes = normal<float>({2}, 31);
  const auto sinks = normal<float>({2}, 32);
  Family family({});
  family.add(2300);
  for (int i = 0; i < 3; ++i) family.fork(0, 2200, 100);
  int number = 0;
  for (const AttentionOptions& options : all_options(slopes, sinks)) {
    SCOPED_TRACE(number++);
    family.expect_bits_of_each_alone({1, 1, 1, 1}, options);
    family.expect_bits_of_each_alone({3, 1, 0, 60}, options);
  }
}

TEST(KvCacheSharing, BoundedSequences) {
  for (const std::int64_t sinks : {0, 5}) {
    SCOPED_TRACE(sinks);
    Family family({.page_size = 16});
    // The first sequence and its fork still see every key.
    family.add(1200, {.window = 1250, .sinks = sinks, .max_append = 40, .rewind = 100});
    family.fork(0, 1150, 20);
    // These two sequences have forgotten keys, the second later.
    family.add(1300, {.window = 50, .sinks = sinks, .max_append = 40, .rewind = 100});
    family.fork(2, 1290, 10);
    family.add(1040, {.window = 1030, .sinks = sinks, .max_append = 40, .rewind = 100});
    family.fork(4, 1040, 10);
    family.expect_bits_of_each_alone({1, 1, 1, 1, 1, 1});
    family.expect_bits_of_each_alone({3, 2, 1, 3, 1, 10});
  }
}

TEST(KvCacheSharing, NumbersThatAreNotFinite) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto with = [&](Family& family, std::int64_t n, std::int64_t at, float number) {
    auto value = family.values(n);
    for (std::int64_t d = 0; d < value.extent(2); ++d) value(0, at, d) = number;
    return value;
  };
  for (const float number : {nan, std::numeric_limits<float>::infinity()}) {
    for (const bool is_in_prefix : {false, true}) {
      SCOPED_TRACE(is_in_prefix);
      Family family({});
      family.add(0);
      family[0].append(family.keys(1100),
                       is_in_prefix ? with(family, 1100, 500, number) : family.values(1100));
      for (std::size_t i = 1; i < 4; ++i) {
        family.fork(0, 1100, 3);
        // Hidden from the first of two queries and visible to the second.
        family[i].append(family.keys(1), i == 2 ? with(family, 1, 0, number) : family.values(1));
      }
      family.expect_bits_of_each_alone({1, 2, 2, 1});
    }
  }
}

TEST(KvCacheSharing, ScoresTooLargeForOnePass) {
  Family family({});
  family.add(0);
  auto key = family.keys(1100);
  for (float& number : key.elements()) number *= 3e6F;
  family[0].append(key, family.values(1100));
  for (int i = 0; i < 3; ++i) family.fork(0, 1100, 40);
  family.expect_bits_of_each_alone({1, 1, 2, 1});
}

class KvCacheSharingTiles : public testing::Test {
 protected:
  void SetUp() override {
    if (attention_target() == "reference") GTEST_SKIP() << "the reference shares nothing";
  }

  // Like siblings(), but without shared pages.
  static Family strangers(const PrefixSizes& sizes, std::int64_t count, std::int64_t length) {
    Family family(sizes);
    for (std::int64_t i = 0; i < count; ++i) family.add(length);
    return family;
  }
  static Family equal_siblings(const PrefixSizes& sizes, std::int64_t count, std::int64_t prefix,
                               std::int64_t own) {
    Family family(sizes);
    const auto first = family.add(prefix + own);
    for (std::int64_t i = 1; i < count; ++i) family.fork(first, prefix, own);
    return family;
  }
};

TEST_F(KvCacheSharingTiles, OfASharedPrefixAreReadOnce) {
  constexpr std::int64_t kPrefix = 2048;
  for (const std::int64_t count : {2, 5, 16}) {
    for (const KvStorage storage : {KvStorage::kFloat32, KvStorage::kInt4}) {
      const PrefixSizes sizes{.num_heads = 4, .storage = storage, .page_size = 64};
      const std::int64_t apart = strangers(sizes, count, kPrefix + 200).tiles_read();
      const std::int64_t shared = equal_siblings(sizes, count, kPrefix, 200).tiles_read();
      const std::int64_t saved = (count - 1) * sizes.num_kv_heads * kPrefix / 128;
      EXPECT_NEAR(static_cast<double>(apart - shared), static_cast<double>(saved), 4) << count;
    }
  }
}

TEST_F(KvCacheSharingTiles, OfGroupsWithinGroupsToo) {
  Family family({.num_kv_heads = 1});
  const auto first = family.add(3100);
  const auto second = family.fork(first, 1024, 2076);
  family.fork(first, 2048, 1052);
  family.fork(second, 3072, 28);
  const std::int64_t apart = strangers({.num_kv_heads = 1}, 4, 3100).tiles_read();
  // Saves eight tiles three times, eight once and sixteen once.
  EXPECT_NEAR(static_cast<double>(apart - family.tiles_read()), 3 * 8 + 8 + 16, 8);
}

TEST_F(KvCacheSharingTiles, AreNotSharedWhereRowsDoNotSeeThemAlike) {
  const auto slopes = normal<float>({2}, 31);
  const auto sinks = normal<float>({2}, 32);
  const auto options = all_options(slopes, sinks);
  Family alike = equal_siblings({}, 3, 2200, 100);
  Family apart = strangers({}, 3, 2300);
  for (std::size_t i = 0; i < options.size(); ++i) {
    // With two key heads and three sequences two chunks are saved; key_lengths leaves one. Windows,
    // terms, dropout and irregular masks share nothing.
    const std::int64_t chunks = i < 4 ? 2 : i == 6 ? 1 : 0;
    const std::int64_t saved = apart.tiles_read(options[i]) - alike.tiles_read(options[i]);
    EXPECT_NEAR(static_cast<double>(saved), static_cast<double>(chunks * 2 * 2 * 8),
                chunks == 0 ? 0 : 4)
        << i;
  }
  // Rows that fill their own panels share nothing.
  EXPECT_EQ(alike.tiles_read({.mask = causal()}, 50), apart.tiles_read({.mask = causal()}, 50));
}

}  // namespace
}  // namespace heed
