#include "core/thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "heed/core/error.h"

namespace heed { namespace {

using std::chrono::steady_clock;
using testing::StrEq;
using testing::ThrowsMessage;

// Sets the process-wide number of threads for a test.
class ThreadPoolTest : public testing::Test {
 protected:
  void SetUp() override { set_num_threads(kThreads); }
  void TearDown() override { set_num_threads(0); }

  static constexpr int kThreads = 4;
};

// Waits until `count` callers have arrived; returns false after half a minute.
class Meeting {
 public:
  explicit Meeting(int count) : missing_(count) {}
  bool wait() {
    --missing_;
    const auto end = steady_clock::now() + std::chrono::seconds(30);
    while (missing_ > 0) {
      if (steady_clock::now() > end) return false;
      std::this_thread::yield();
    }
    return true;
  }

 private:
  std::atomic<int> missing_;
};

TEST_F(ThreadPoolTest, ComputesOnAllThreadsAtOnce) {
  for (int i = 0; i < 50; ++i) {
    Meeting meeting(kThreads);
    parallel_for(0, kThreads, 1, [&](std::int64_t, std::int64_t) { EXPECT_TRUE(meeting.wait()); });
  }
}

TEST_F(ThreadPoolTest, HelpersThatSleepAreWoken) {
  for (int i = 0; i < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    Meeting meeting(kThreads);
    parallel_for(0, kThreads, 1, [&](std::int64_t, std::int64_t) { EXPECT_TRUE(meeting.wait()); });
  }
}

TEST_F(ThreadPoolTest, HelpersThatAreLeftOverJoinLoopsWithin) {
  Meeting meeting(kThreads);
  parallel_for(0, 2, 1, [&](std::int64_t, std::int64_t) {
    parallel_for(0, 2, 1, [&](std::int64_t, std::int64_t) { EXPECT_TRUE(meeting.wait()); });
  });
}

TEST_F(ThreadPoolTest, CallersOnManyThreadsGetTheirLoopsDone) {
  std::atomic<std::int64_t> sum = 0;
  std::vector<std::thread> callers;
  callers.reserve(5);
  for (int c = 0; c < 5; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        parallel_for(0, 20, 1, [&](std::int64_t first, std::int64_t last) { sum += last - first; });
        if (i % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(sum, 5 * 300 * 20);
}

TEST_F(ThreadPoolTest, OtherNumbersOfThreadsFollowEachOther) {
  for (const int count : {1, 7, 2, 16, 3}) {
    set_num_threads(count);
    Meeting meeting(count);
    parallel_for(0, count, 1, [&](std::int64_t, std::int64_t) { EXPECT_TRUE(meeting.wait()); });
  }
}

// Windows has no empty variables.
#if !defined(_WIN32)
TEST(ThreadPool, RefusesATimeThatIsNone) {
  for (const char* const text : {"soon", "", "-1", "1.5", "1000001", "20us"}) {
    ::setenv("HEED_SPIN_MICROSECONDS", text, 1);
    ThreadPool pool;
    ::unsetenv("HEED_SPIN_MICROSECONDS");
    int calls = 0;
    EXPECT_THAT(
        [&] { pool.run(2, [&] { ++calls; }); },
        ThrowsMessage<InvalidArgument>(StrEq(std::string("HEED_SPIN_MICROSECONDS is '") + text +
                                             "', expected microseconds from 0 to 1000000")));
    EXPECT_EQ(calls, 0);
  }
}
#endif

}  // namespace
}  // namespace heed
