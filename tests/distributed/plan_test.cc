#include "heed/distributed/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "distributed/divided.h"
#include "heed/core/error.h"
#include "support/refusal.h"

namespace heed { namespace {

using distributed::Cluster;
using distributed::DividedBy;
using distributed::DivisionPlan;
using testing::HasSubstr;
using testing_support::normal;
using testing_support::Refuses;

AttentionShapes shapes(std::int64_t length) {
  return {.num_heads = 4,
          .num_kv_heads = 2,
          .q_len = length,
          .kv_len = length,
          .head_dim = 8,
          .value_dim = 12};
}

// Counts the bytes of keys and values that a rank receives.
class Counting : public Communicator {
 public:
  explicit Counting(Communicator& ranks) : ranks_(ranks) {}

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  std::unique_ptr<Transfer> send(std::span<const std::byte> message, int to, int tag) override {
    return ranks_.send(message, to, tag);
  }
  std::unique_ptr<Transfer> receive(std::span<std::byte> message, int from, int tag) override {
    received_ += static_cast<std::int64_t>(message.size());
    return ranks_.receive(message, from, tag);
  }
  std::unique_ptr<Transfer> broadcast(std::span<std::byte> message, int root) override {
    if (root != rank()) received_ += static_cast<std::int64_t>(message.size());
    return ranks_.broadcast(message, root);
  }
  void gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    ranks_.gather(mine, all);
  }

  std::int64_t received() const { return received_; }

 private:
  Communicator& ranks_;
  std::int64_t received_ = 0;
};

void expect_bytes_as_planned(int size, const Mask& mask, DividedBy by) {
  constexpr std::int64_t kLength = 5 * 1024 + 100;
  const testing_support::Operands<float> in({kLength, kLength});
  const DivisionPlan plan = distributed::plan(shapes(kLength), size, {.mask = mask}, by);
  run_thread_ranks(size, [&](Communicator& ranks) {
    Counting counting(ranks);
    const auto own = [&](const Tensor<float>& tensor) {
      return distributed::own_tokens(ranks, FloatView(tensor));
    };
    distributed::attention({counting, by}, own(in.query), own(in.key), own(in.value),
                           {.mask = mask});
    EXPECT_EQ(counting.received(), plan.received[static_cast<std::size_t>(ranks.rank())]);
  });
}

TEST(DivisionPlan, CountsTheBytesThatAreSent) {
  for (const Mask& mask : {Mask(), causal(), sliding_window(500, 0), streaming(4, 100),
                           documents({0, 1024, 3000, 5 * 1024 + 100}), longformer(64, 1)}) {
    SCOPED_TRACE(mask.description());
    for (const int size : {1, 2, 4, 8}) expect_bytes_as_planned(size, mask, DividedBy::kTokens);
    for (const int size : {1, 2}) expect_bytes_as_planned(size, mask, DividedBy::kHeads);
  }
}

TEST(DivisionPlan, DividesHeadsWhereFewerBytesAreSent) {
  const auto divided_by = [](std::int64_t kv_heads, int size, const Mask& mask = {}) {
    AttentionShapes some = shapes(16 * 1024);
    some.num_heads = 8;
    some.num_kv_heads = kv_heads;
    return distributed::plan(some, size, {.mask = mask});
  };
  EXPECT_EQ(divided_by(8, 4).divided_by, DividedBy::kHeads);
  expect_bytes_as_planned(2, {}, DividedBy::kAutomatic);
  EXPECT_THAT(divided_by(8, 4).reason,
              HasSubstr("the busiest rank receives 7.9 MB by tokens, 3.9 MB by heads"));
  // Four query heads per key head: queries and results take more bytes than keys and values.
  EXPECT_EQ(divided_by(2, 2).divided_by, DividedBy::kTokens);
  EXPECT_EQ(divided_by(8, 4, sliding_window(100, 0)).divided_by, DividedBy::kTokens);
  EXPECT_EQ(divided_by(4, 8).reason, "4 key heads do not divide by 8");
  EXPECT_EQ(divided_by(8, 1).reason, "there is one rank");
  EXPECT_THAT([&] { distributed::plan(shapes(10), 3, {}, DividedBy::kHeads); },
              Refuses("num_kv_heads", "2"));
}

TEST(DivisionPlan, HeadsOfWhichEachSeesAsMuchAreBalanced) {
  const DivisionPlan plan =
      distributed::plan(shapes(4096), 2, {.mask = causal()}, DividedBy::kHeads);
  EXPECT_EQ(plan.balance(), 1);
  double pairs = 0;
  for (int rank = 0; rank < 2; ++rank) pairs += plan.pairs_of(rank);
  // Panels of rows begin at other positions.
  EXPECT_NEAR(pairs / distributed::plan(shapes(4096), 1, {.mask = causal()}).pairs_of(0), 1, 1e-3);
}

TEST(DivisionPlan, SendsNoSegmentThatNobodySees) {
  // Every query sees only its own document, and the documents are the segments.
  const Mask mask = documents({0, 1024, 2048, 3072});
  const DivisionPlan plan = distributed::plan(shapes(3072), 3, {.mask = mask});
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(plan.received[static_cast<std::size_t>(rank)], 0);
}

TEST(DivisionPlan, CausalWorkIsBalanced) {
  const DivisionPlan plan =
      distributed::plan(shapes(64 * 1024), 4, {.mask = causal()}, DividedBy::kTokens);
  EXPECT_GT(plan.balance(), 0.995);
  EXPECT_LE(plan.balance(), 1);
  // 4 heads, 64 segments: all segments before a row's own, and about half of that one.
  const double segment = 1024.0 * 1024.0;
  double pairs = 0;
  for (int rank = 0; rank < 4; ++rank) pairs += plan.pairs_of(rank);
  EXPECT_NEAR(pairs / (4 * segment * 64 * 64 / 2.0), 1, 0.01);
  EXPECT_EQ(plan.segment_bytes, 2 * 1024 * (8 + 12) * 4);
}

TEST(DivisionPlan, PrintsItself) {
  std::ostringstream text;
  text << distributed::plan(shapes(2048), 2);
  EXPECT_EQ(text.str(),
            "ranks       2, 2048 queries and 2048 keys in segments of 1024\n"
            "divided by  tokens: the busiest rank receives 0.2 MB by tokens, 0.2 MB by heads\n"
            "balance     100.0 % of the busiest rank's work on average\n"
            "sent        0.3 MB\n"
            "rank 0      8.389e+06 pairs, receives 0.2 MB\n"
            "rank 1      8.389e+06 pairs, receives 0.2 MB\n");
}

TEST(DivisionPlan, RefusesWhatAttentionRefuses) {
  EXPECT_THAT([] { distributed::plan(shapes(10), 0); }, Refuses("size", "0"));
  AttentionShapes odd = shapes(10);
  odd.num_heads = 3;
  EXPECT_THAT([&] { distributed::plan(odd, 2); }, Refuses("num_heads", "3"));
}

TEST(SimulatedSeconds, OfOneRankIsItsWork) {
  const DivisionPlan plan = distributed::plan(shapes(4096), 1, {.mask = causal()});
  const Cluster cluster{.pairs_per_second = 1e9, .latency_seconds = 1, .bytes_per_second = 1};
  EXPECT_NEAR(distributed::simulated_seconds(plan, cluster), plan.pairs_of(0) / 1e9, 1e-12);
}

TEST(SimulatedSeconds, OfDividedHeadsIsSendingAndThenComputing) {
  const DivisionPlan plan = distributed::plan(shapes(4096), 2, {}, DividedBy::kHeads);
  const double bytes = static_cast<double>(plan.most_bytes_received());
  EXPECT_NEAR(distributed::simulated_seconds(plan, {1e9, 0.25, 1e6}),
              2 * 0.25 + bytes / 1e6 + plan.pairs_of(0) / 1e9, 1e-12);
}

TEST(SimulatedSeconds, LiesBetweenTheBusiestRankAndEverythingInTurn) {
  const DivisionPlan plan =
      distributed::plan(shapes(16384), 4, {.mask = causal()}, DividedBy::kTokens);
  const auto seconds = [&](double latency, double bandwidth) {
    return distributed::simulated_seconds(plan, {1e9, latency, bandwidth});
  };
  double busiest = 0;
  for (int rank = 0; rank < 4; ++rank) busiest = std::max(busiest, plan.pairs_of(rank) / 1e9);
  // Ranks wait for each other where one has more work for a segment than others.
  EXPECT_GE(seconds(0, 1e30), busiest);
  EXPECT_LE(seconds(0, 1e30), 1.1 * busiest);
  EXPECT_GT(seconds(1e-3, 1e30), seconds(0, 1e30));
  // If only sending takes time, the segments are sent one after the other, except those that are
  // sent at once.
  const double link = static_cast<double>(plan.segment_bytes) / 1e3;
  EXPECT_GE(seconds(0, 1e3), 8 * link);
  EXPECT_LE(seconds(0, 1e3), 16 * link + busiest);
}

}  // namespace
}  // namespace heed
