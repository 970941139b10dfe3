#include "heed/core/cancellation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/attention/linear_attention.h"
#include "heed/attention/packed.h"
#include "heed/attention/reference.h"
#include "heed/attention/select_blocks.h"
#include "heed/attention/statistics.h"
#include "heed/core/parallel.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::normal;
using testing_support::same_bits;

/// Requests cancellation at the given poll; 0: never.
class CancelledAt final : public Cancellation {
 public:
  explicit CancelledAt(std::int64_t poll = 0) : poll_(poll) {}
  void poll() noexcept override {
    if (++num_polls_ == poll_) request();
  }
  std::int64_t num_polls() const { return num_polls_; }

 private:
  std::int64_t poll_;
  std::atomic<std::int64_t> num_polls_ = 0;
};

struct Computation {
  const char* name;
  std::function<void()> compute;
};

/// Returns computations that take long for long sequences, in sizes that take several chunks of
/// work.
std::vector<Computation> computations() {
  static const auto x = normal<float>({1, 2, 1300, 8}, 1);
  static const auto wide = normal<double>({1, 1, 40, 4}, 2);
  static const auto long_wide = normal<double>({1, 2, 1300, 8}, 4);
  static const auto tokens = normal<float>({1300, 2, 8}, 3);
  static const auto forward = attention_with_lse(x, x, x);
  static const std::vector<AttentionRow> rows{{0, 0, 3}, {0, 1, 1200}};
  static const std::vector<std::int64_t> ends{0, 700, 1300};
  return {
      {"attention", [] { attention(x, x, x); }},
      {"attention in double", [] { attention(long_wide, long_wide, long_wide); }},
      {"attention_backward", [] { attention_backward(x, x, x, x, forward); }},
      {"attention_packed",
       [] {
         attention_packed(tokens, tokens, tokens, {ends, ends});
       }},
      {"attention_weights", [] { attention_weights(x, x, rows); }},
      {"attention_statistics", [] { attention_statistics(x, x); }},
      {"linear_attention", [] { linear_attention(x, x, x); }},
      {"linear_attention_backward",
       [] {
         linear_attention_backward({x, {}}, x, x, x);
       }},
      {"select_blocks", [] { select_blocks(x, x, {.block = 8}); }},
      {"feature_map_attention", [] { feature_map_attention(x, x, x, {.causal = true}); }},
      {"feature_map_attention_backward", [] { feature_map_attention_backward(x, x, x, x); }},
      {"reference::attention_backward",
       [] { reference::attention_backward(wide, wide, wide, wide); }},
      {"reference::linear_attention", [] { reference::linear_attention(wide, wide, wide); }},
      {"materialize_allow", [] { materialize_allow(causal(), {.q_len = 9, .kv_len = 9}); }},
      {"to_lines", [] { to_lines(causal(), {.q_len = 9, .kv_len = 9}); }},
  };
}

TEST(Cancellation, StopsEveryComputationBetweenItsPieces) {
  const ThreadLimit one(1);  // so that the number of polls is always the same
  for (const auto& [name, compute] : computations()) {
    CancelledAt never;
    {
      const CancellationScope scope(&never);
      compute();
    }
    EXPECT_GE(never.num_polls(), 3) << name << " hardly ever looks";
    CancelledAt halfway(never.num_polls() / 2);
    const CancellationScope scope(&halfway);
    EXPECT_THAT(compute, ThrowsMessage<Cancelled>(HasSubstr("cancelled"))) << name;
    EXPECT_LT(halfway.num_polls(), never.num_polls()) << name << " went on";
  }
}

TEST(Cancellation, ChangesNoBitAndLeavesNothingBehind) {
  const auto x = normal<float>({2, 2, 1300, 8}, 1);
  const auto expected = attention(x, x, x);
  {
    CancelledAt third(3);
    const CancellationScope scope(&third);
    EXPECT_THROW(attention(x, x, x), Cancelled);
  }
  CancelledAt never;
  const CancellationScope scope(&never);
  EXPECT_TRUE(same_bits(attention(x, x, x), expected));
}

TEST(Cancellation, OfTheInnermostScopeCounts) {
  Cancellation outer;
  outer.request();
  const CancellationScope outer_scope(&outer);
  EXPECT_THROW(check_cancelled(), Cancelled);
  {
    const CancellationScope none(nullptr);
    EXPECT_NO_THROW(check_cancelled());
    EXPECT_EQ(Cancellation::current(), nullptr);
  }
  EXPECT_EQ(Cancellation::current(), &outer);
}

TEST(Cancellation, LetsNoFurtherChunkStart) {
  set_num_threads(4);
  Cancellation cancellation;
  const CancellationScope scope(&cancellation);
  std::atomic<int> chunks = 0;
  const auto loop = [&] {
    parallel_for(0, 1000000, 1, [&](std::int64_t, std::int64_t) {
      ++chunks;
      cancellation.request();
    });
  };
  EXPECT_THROW(loop(), Cancelled);
  set_num_threads(0);
  // Only chunks that had begun are finished.
  EXPECT_LE(chunks, 4);
}

/// An executor with the caller of a loop and one more thread.
class TwoThreads final : public Executor {
 public:
  int num_threads() const override { return 2; }
  void run(int, FunctionRef<void()> work) override {
    std::thread other([&] { work(); });
    work();
    other.join();
  }
};

/// Requests cancellation when the thread that made it polls after `is_idle` is set.
class CancelledWhenIdle final : public Cancellation {
 public:
  void poll() noexcept override {
    if (is_idle && std::this_thread::get_id() == thread_) request();
  }
  std::atomic<bool> is_idle = false;

 private:
  std::thread::id thread_ = std::this_thread::get_id();
};

TEST(Cancellation, IsPolledByAThreadThatWaitsForOthers) {
  set_executor(std::make_shared<TwoThreads>());
  CancelledWhenIdle cancellation;
  const CancellationScope scope(&cancellation);
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> other_works = false;
  bool was_stopped = false;
  parallel_for(0, 2, 1, [&](std::int64_t, std::int64_t) {
    if (std::this_thread::get_id() == caller) {
      while (!other_works) std::this_thread::yield();
      cancellation.is_idle = true;
      return;
    }
    other_works = true;
    // A failing test ends after this time.
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!cancellation.is_requested() && std::chrono::steady_clock::now() < patience) {
      std::this_thread::yield();
    }
    was_stopped = cancellation.is_requested();
  });
  set_executor(nullptr);
  EXPECT_TRUE(was_stopped);
}

}  // namespace
}  // namespace heed
