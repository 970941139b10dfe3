#include "heed/core/parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/thread_executor.h"
#include "support/caller_mode.h"
#include "support/refusal.h"

namespace heed { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;
using testing::ThrowsMessage;
using testing_support::Refuses;

using Chunk = std::pair<std::int64_t, std::int64_t>;

std::set<Chunk> chunks_of(std::int64_t begin, std::int64_t end, std::int64_t grain) {
  std::mutex mutex;
  std::set<Chunk> chunks;
  parallel_for(begin, end, grain, [&](std::int64_t first, std::int64_t last) {
    const std::lock_guard lock(mutex);
    EXPECT_TRUE(chunks.emplace(first, last).second) << "a chunk ran twice";
  });
  return chunks;
}

/// Sets the process-wide number of threads for one test.
class NumThreads {
 public:
  explicit NumThreads(int count) { set_num_threads(count); }
  ~NumThreads() { set_num_threads(0); }
  NumThreads(const NumThreads&) = delete;
  NumThreads& operator=(const NumThreads&) = delete;
};

/// Records the largest number of threads between enter() and leave() at once.
class Concurrency {
 public:
  void enter() {
    const int now = ++current_;
    int highest = highest_;
    while (now > highest && !highest_.compare_exchange_weak(highest, now)) continue;
  }
  void leave() { --current_; }
  int highest() const { return highest_; }

 private:
  std::atomic<int> current_ = 0;
  std::atomic<int> highest_ = 0;
};

/// An executor with no thread available.
class BusyExecutor final : public Executor {
 public:
  int num_threads() const override { return 4; }
  void run(int /*count*/, FunctionRef<void()> /*work*/) override {}
};

class WithExecutor {
 public:
  explicit WithExecutor(std::shared_ptr<Executor> executor) { set_executor(std::move(executor)); }
  ~WithExecutor() { set_executor(nullptr); }
  WithExecutor(const WithExecutor&) = delete;
  WithExecutor& operator=(const WithExecutor&) = delete;
};

TEST(ParallelFor, DividesIntoChunksOfTheGrain) {
  EXPECT_THAT(chunks_of(3, 13, 4), ElementsAre(Pair(3, 7), Pair(7, 11), Pair(11, 13)));
  EXPECT_THAT(chunks_of(-4, 0, 2), ElementsAre(Pair(-4, -2), Pair(-2, 0)));
  EXPECT_THAT(chunks_of(5, 9, 100), ElementsAre(Pair(5, 9)));
  EXPECT_TRUE(chunks_of(7, 7, 1).empty());
}

TEST(ParallelFor, ChunksDoNotDependOnTheThreads) {
  const std::set<Chunk> expected = chunks_of(0, 1001, 10);
  for (const int count : {1, 2, 7}) {
    const NumThreads threads(count);
    EXPECT_EQ(chunks_of(0, 1001, 10), expected);
  }
}

TEST(ParallelFor, WorksAtTheEndsOfTheIntegers) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(chunks_of(kMax - 5, kMax, 4),
              ElementsAre(Pair(kMax - 5, kMax - 1), Pair(kMax - 1, kMax)));
  EXPECT_THAT(chunks_of(0, kMax, kMax), ElementsAre(Pair(0, kMax)));
  EXPECT_THAT(chunks_of(0, kMax, kMax - 1), ElementsAre(Pair(0, kMax - 1), Pair(kMax - 1, kMax)));
}

TEST(ParallelFor, ChecksItsArguments) {
  const auto nothing = [](std::int64_t, std::int64_t) {};
  EXPECT_THAT([&] { parallel_for(2, 1, 1, nothing); },
              ThrowsMessage<InvalidArgument>(HasSubstr("parallel_for: [2, 1) is not a range")));
  EXPECT_THROW(parallel_for(std::numeric_limits<std::int64_t>::min(), 1, 1, nothing),
               InvalidArgument);
  EXPECT_THAT([&] { parallel_for(0, 1, 0, nothing); }, Refuses("grain", "0"));
}

TEST(ParallelFor, OneChunkOrOneThreadRunsHereInOrder) {
  const auto here = std::this_thread::get_id();
  const ThreadLimit limit(1);
  std::vector<std::int64_t> order;
  parallel_for(0, 4, 1, [&](std::int64_t first, std::int64_t) {
    EXPECT_EQ(std::this_thread::get_id(), here);
    order.push_back(first);
  });
  EXPECT_THAT(order, ElementsAre(0, 1, 2, 3));

  const auto executor = std::make_shared<ThreadExecutor>(4);
  const WithExecutor with_executor(executor);
  chunks_of(0, 4, 4);
  chunks_of(0, 4, 1);
  EXPECT_EQ(executor->num_calls(), 0);
}

TEST(ParallelFor, Nests) {
  const NumThreads threads(4);
  std::vector<std::atomic<int>> visits(1800);
  parallel_for(0, 20, 1, [&](std::int64_t i, std::int64_t) {
    parallel_for(0, 30, 1, [&](std::int64_t j, std::int64_t) {
      parallel_for(0, 3, 1, [&](std::int64_t k, std::int64_t) {
        ++visits[static_cast<std::size_t>((i * 30 + j) * 3 + k)];
      });
    });
  });
  for (const auto& count : visits) EXPECT_EQ(count, 1);
}

TEST(ParallelFor, RethrowsTheFirstException) {
  for (const int count : {1, 4}) {
    const NumThreads threads(count);
    EXPECT_THAT(([] {
                  parallel_for(0, 1000, 1, [](std::int64_t i, std::int64_t) {
                    parallel_for(0, 10, 1, [i](std::int64_t j, std::int64_t) {
                      if (i == 500 && j == 5) throw std::runtime_error("chunk 500");
                    });
                  });
                }),
                ThrowsMessage<std::runtime_error>(std::string("chunk 500")));
  }
}

TEST(ParallelFor, StartsNoChunkAfterAnException) {
  std::atomic<int> started = 0;
  const NumThreads threads(2);
  const auto throw_at_once = [&](std::int64_t, std::int64_t) {
    ++started;
    throw std::runtime_error("at once");
  };
  EXPECT_THROW(parallel_for(0, 1000, 1, throw_at_once), std::runtime_error);
  EXPECT_LE(started, 2);
}

TEST(ParallelFor, ReadsAndWritesAreSeenAfterwards) {
  const NumThreads threads(4);
  std::vector<std::int64_t> squares(5000);
  parallel_for(0, 5000, 7, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) squares[static_cast<std::size_t>(i)] = i * i;
  });
  for (std::int64_t i = 0; i < 5000; ++i) EXPECT_EQ(squares[static_cast<std::size_t>(i)], i * i);
}

TEST(ParallelFor, ComputesInTheStandardFloatingPointEnvironment) {
  const auto third = [] {
    volatile double one = 1;  // hidden from the compiler
    return one / 3;
  };
  const double nearest = third();
  for (const int threads_used : {1, 4}) {
    const NumThreads threads(threads_used);
    std::atomic<int> others = 0;
    const CallerMode mode(CallerMode::Kind::kUpward);
    const std::uint64_t before = CallerMode::now();
    parallel_for(0, 2000, 1, [&](std::int64_t, std::int64_t) {
      if (third() != nearest) ++others;
    });
    EXPECT_EQ(others, 0);
    EXPECT_EQ(CallerMode::now(), before);
    EXPECT_NE(third(), nearest);
  }
}

TEST(ParallelFor, RunsNothingElseWhileItWaits) {
  const NumThreads threads(3);
  std::atomic<int> intrusions = 0;
  // Each loop has its own thread, which starts it and waits for helpers.
  const auto run_loops = [&intrusions](std::thread::id other_starter) {
    for (int i = 0; i < 200; ++i) {
      parallel_for(0, 8, 1, [&](std::int64_t, std::int64_t) {
        if (std::this_thread::get_id() == other_starter) ++intrusions;
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      });
    }
  };
  std::atomic<bool> is_over = false;
  std::thread other([&, here = std::this_thread::get_id()] {
    while (!is_over) run_loops(here);
  });
  run_loops(other.get_id());
  is_over = true;
  other.join();
  EXPECT_EQ(intrusions, 0);
}

TEST(NumThreadsSetting, IsTheExecutorsUnlessSet) {
  EXPECT_GE(num_threads(), 1);
  {
    const NumThreads threads(7);
    EXPECT_EQ(num_threads(), 7);
  }
  const WithExecutor with_executor(std::make_shared<ThreadExecutor>(5));
  EXPECT_EQ(num_threads(), 5);
  EXPECT_THAT([] { set_num_threads(-1); }, Refuses("count", "-1"));
}

TEST(ThreadLimit, OnlyLowersAndOnlyHere) {
  const NumThreads threads(6);
  {
    const ThreadLimit limit(3);
    EXPECT_EQ(num_threads(), 3);
    {
      const ThreadLimit wider(5);
      EXPECT_EQ(num_threads(), 3);
    }
    {
      const ThreadLimit narrower(2);
      EXPECT_EQ(num_threads(), 2);
    }
    EXPECT_EQ(num_threads(), 3);
    std::thread([] { EXPECT_EQ(num_threads(), 6); }).join();
  }
  EXPECT_EQ(num_threads(), 6);
  EXPECT_THAT([] { ThreadLimit(0); }, Refuses("count", "0"));
}

TEST(ThreadLimit, HoldsInNestedLoops) {
  const NumThreads threads(8);
  const ThreadLimit limit(3);
  Concurrency concurrency;
  parallel_for(0, 12, 1, [&](std::int64_t, std::int64_t) {
    EXPECT_EQ(num_threads(), 3);
    const ThreadLimit inner(2);
    parallel_for(0, 40, 1, [&](std::int64_t, std::int64_t) {
      EXPECT_EQ(num_threads(), 2);
      concurrency.enter();
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      concurrency.leave();
    });
  });
  EXPECT_LE(concurrency.highest(), 3);
}

TEST(SetExecutor, RunsLoopsOnItsThreads) {
  const auto executor = std::make_shared<ThreadExecutor>(4);
  const WithExecutor with_executor(executor);
  std::atomic<int> waiting = 0;
  const auto here = std::this_thread::get_id();
  // Each chunk waits for all four, so that the loop ends only if four threads run at once.
  parallel_for(0, 4, 1, [&](std::int64_t, std::int64_t) {
    EXPECT_NE(std::this_thread::get_id(), here);
    ++waiting;
    while (waiting < 4) std::this_thread::yield();
  });
  EXPECT_EQ(executor->num_calls(), 4);
}

TEST(NumThreadsSet, HasABound) {
  EXPECT_THAT([] { set_num_threads(1'000'000'000); }, Refuses("count", "1000000000"));
  EXPECT_THAT([] { set_num_threads(-1); }, Refuses("count", "-1"));
}

// Passes every loop to the default executor.
class PassingExecutor final : public Executor {
 public:
  int num_threads() const override { return default_executor().num_threads(); }
  void run(int count, FunctionRef<void()> work) override {
    ++num_loops;
    default_executor().run(count, work);
  }

  std::atomic<int> num_loops = 0;
};

TEST(SetExecutor, MayLeaveLoopsToTheDefault) {
  const auto passing = std::make_shared<PassingExecutor>();
  set_executor(passing);
  set_num_threads(3);
  std::atomic<int> waiting = 0;
  // Each chunk waits for all.
  parallel_for(0, 3, 1, [&](std::int64_t, std::int64_t) {
    for (++waiting; waiting < 3;) std::this_thread::yield();
  });
  set_num_threads(0);
  set_executor(nullptr);
  EXPECT_EQ(passing->num_loops, 1);
}

TEST(SetExecutor, NeedsNoThreadToFinish) {
  const WithExecutor with_executor(std::make_shared<BusyExecutor>());
  EXPECT_EQ(chunks_of(0, 100, 1).size(), 100U);
}

TEST(SetExecutor, CarriesLimitsAndExceptionsToItsThreads) {
  const WithExecutor with_executor(std::make_shared<ThreadExecutor>(8));
  const ThreadLimit limit(2);
  EXPECT_THAT(([] {
                parallel_for(0, 8, 1, [](std::int64_t i, std::int64_t) {
                  EXPECT_EQ(num_threads(), 2);
                  if (i == 0) throw InvalidArgument("from a chunk");
                });
              }),
              ThrowsMessage<InvalidArgument>(std::string("from a chunk")));
}

TEST(FunctionRef, CallsWhatItRefersTo) {
  int calls = 0;
  auto counting = [&calls](int by) { return calls += by; };
  const FunctionRef<int(int)> reference = counting;
  const FunctionRef<int(int)> copy =
      reference;  // NOLINT(performance-unnecessary-copy-initialization)
  EXPECT_EQ(reference(2), 2);
  EXPECT_EQ(copy(3), 5);
}

}  // namespace
}  // namespace heed
