// How calls take turns, and how their repetitions are summed up.
#include "bench/measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "bench/peak.h"
#include "bench/statistics.h"
#include "heed/core/parallel.h"

namespace heed::cli { namespace {

TEST(BenchStatistics, QuantilesLieBetweenTwoNumbers) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 9}), 3);
  EXPECT_EQ(median({7}), 7);
  // numpy.quantile([1, 2, 4, 9], [0, 0.25, 0.75, 1])
  EXPECT_EQ(quantile({9, 1, 4, 2}, 0), 1);
  EXPECT_EQ(quantile({9, 1, 4, 2}, 0.25), 1.75);
  EXPECT_EQ(quantile({9, 1, 4, 2}, 0.75), 5.25);
  EXPECT_EQ(quantile({9, 1, 4, 2}, 1), 9);
}

TEST(BenchStatistics, ATimingHasMedianBestAndQuartiles) {
  const Timing timing = summarize({9, 1, 4, 2, 3});
  EXPECT_EQ(timing.median, 3);
  EXPECT_EQ(timing.best, 1);
  EXPECT_EQ(timing.lower_quartile, 2);
  EXPECT_EQ(timing.upper_quartile, 4);
  EXPECT_EQ(timing.repetitions, 5);
}

TEST(BenchPeak, OneRateOfManyMayBeAnException) {
  EXPECT_EQ(undisturbed_rate({1, 3, 2}), 3);
  std::vector<double> rates(10, 1);
  rates[4] = 9;
  EXPECT_EQ(undisturbed_rate(rates), 1);
  rates.resize(20, 1);
  rates[15] = 8;
  EXPECT_EQ(undisturbed_rate(rates), 1);
  rates[17] = 7;
  EXPECT_EQ(undisturbed_rate(rates), 7);
}

TEST(BenchPeak, IsThatOfAllThreads) {
  EXPECT_GT(peak_rate(1), 0);
  const double before = peak_rate(1);
  measure_peak(1);
  EXPECT_GT(peak_rate(1), 0.5 * before);
}

class TimeInTurn : public testing::Test {
 protected:
  ~TimeInTurn() override { set_num_threads(0); }

  // Times a call that takes `milliseconds` in turn with one that takes no time, and records their
  // order: 's' for the slow one, 'q' for a run of the quick one.
  std::vector<Repetitions> time_both(const Sampling& sampling, int milliseconds) {
    const auto slow = [&] {
      order_ += 's';
      std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    };
    const auto quick = [&] {
      ++quick_calls_;
      if (order_.back() != 'q') order_ += 'q';
    };
    const std::vector<FunctionRef<void()>> calls{slow, quick};
    return time_in_turn(sampling, calls,
                        [this](int repetition) { reported_.push_back(repetition); });
  }

  std::string order_;
  int quick_calls_ = 0;
  std::vector<int> reported_;
};

TEST_F(TimeInTurn, EachRepetitionTimesEveryCallOnce) {
  const auto made = time_both({.repetitions = 3, .seconds_per_repetition = 1e-3}, 2);
  EXPECT_EQ(order_, "sqsqsqsq");  // once to warm up
  EXPECT_EQ(reported_, (std::vector<int>{0, 0, 1, 2, 3}));
  ASSERT_EQ(made.size(), 2U);
  ASSERT_EQ(made[0].seconds.size(), 3U);
  ASSERT_EQ(made[1].seconds.size(), 3U);
  for (const double seconds : made[0].seconds) EXPECT_GE(seconds, 2e-3);
  for (const double seconds : made[1].seconds) EXPECT_LT(seconds, 1e-3);
  EXPECT_GT(quick_calls_, 3);
  // A thread that sleeps keeps no processor busy.
  for (const double busy : made[0].busy_threads) EXPECT_LT(busy, 0.9);
}

TEST_F(TimeInTurn, ARepetitionMakesOneCallAtLeast) {
  time_both({.warmups = 2, .repetitions = 2, .seconds_per_repetition = 0}, 0);
  EXPECT_EQ(order_, "ssqsqsq");
  EXPECT_EQ(quick_calls_, 4);
}

TEST_F(TimeInTurn, SetsTheNumberOfThreads) {
  time_both({.threads = 2, .repetitions = 1, .seconds_per_repetition = 0}, 0);
  EXPECT_EQ(num_threads(), 2);
}

}  // namespace
}  // namespace heed::cli
