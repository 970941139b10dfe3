// The rule for quiet repetitions, on invented repetitions and on recorded ones with known
// disturbances.
#include "bench/statistics.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "bench/waiting.h"
#include "support/places.h"

namespace heed::cli { namespace {

constexpr Rates kUndisturbed{1, 100};
constexpr Probe kBest{.rates = {1, 100}, .read_seconds = 1};
constexpr Probe kJustQuiet{.rates = {1, 90}, .read_seconds = 1.3};
constexpr Probe kSlowCalls{.rates = {1, 89}, .read_seconds = 1};
constexpr Probe kSlowRead{.rates = {1, 100}, .read_seconds = 1.31};

std::vector<bool> quiet_beside_the_best(const Repetition& repetition) {
  return are_quiet({{.seconds = 1, .before = kBest, .after = kBest}, repetition}, kUndisturbed);
}

TEST(BenchStatistics, QuietNeedsBothProbesOnBothSides) {
  EXPECT_TRUE(quiet_beside_the_best({.before = kJustQuiet, .after = kJustQuiet}).back());
  for (const Probe& disturbed : {kSlowCalls, kSlowRead}) {
    EXPECT_FALSE(quiet_beside_the_best({.before = disturbed, .after = kBest}).back());
    EXPECT_FALSE(quiet_beside_the_best({.before = kBest, .after = disturbed}).back());
  }
}

TEST(BenchStatistics, QuietNeedsThatNobodyWaited) {
  EXPECT_TRUE(
      quiet_beside_the_best({.before = kBest, .after = kBest, .waiting_share = 0.01}).back());
  EXPECT_FALSE(
      quiet_beside_the_best({.before = kBest, .after = kBest, .waiting_share = 0.011}).back());
}

Repetition made(double seconds, const Probe& before, const Probe& after) {
  return {.seconds = seconds, .before = before, .after = after};
}

TEST(BenchStatistics, OnlyQuietRepetitionsCount) {
  const std::vector<Repetition> repetitions{made(9, kBest, kBest), made(1, kSlowCalls, kBest),
                                            made(4, kBest, kBest), made(5, kBest, kBest)};
  const auto timing = summarize(repetitions, undisturbed_rates(repetitions));
  EXPECT_EQ(timing.median_seconds, 5);
  EXPECT_EQ(timing.best_seconds, 4);
  EXPECT_EQ(timing.quiet, 3);
  EXPECT_EQ(timing.repetitions, 4);
}

TEST(BenchStatistics, WhereNoneIsQuietAllCount) {
  const std::vector<Repetition> repetitions{made(7, kSlowCalls, kBest), made(1, kSlowRead, kBest),
                                            made(3, kBest, kSlowCalls),
                                            made(4, kSlowRead, kSlowRead)};
  const auto timing = summarize(repetitions, kUndisturbed);
  EXPECT_EQ(timing.median_seconds, 3.5);
  EXPECT_EQ(timing.best_seconds, 1);
  EXPECT_EQ(timing.quiet, 0);
}

TEST(BenchStatistics, WhatWasSeenWhileTheMachineSettledCounts) {
  Repetition repetition = made(1, kBest, kBest);
  repetition.settled = {2, 112};
  const Rates rates = undisturbed_rates({repetition});
  EXPECT_EQ(rates.fma, 2);
  EXPECT_EQ(rates.attention, 112);
  EXPECT_FALSE(are_quiet({repetition}, rates).front());
}

TEST(BenchStatistics, OneProbeOfManyMayBeAnException) {
  const auto rate_of = [](int probes) {
    std::vector<double> rates;
    for (int i = 1; i <= probes; ++i) rates.push_back(i);
    return undisturbed_rate(rates);
  };
  EXPECT_EQ(rate_of(1), 1);
  EXPECT_EQ(rate_of(9), 9);
  EXPECT_EQ(rate_of(10), 9);
  EXPECT_EQ(rate_of(19), 18);
  EXPECT_EQ(rate_of(20), 18);
  EXPECT_EQ(rate_of(1000), 998);
}

TEST(BenchWaiting, BeingWokenIsNobodysFault) {
  EXPECT_NEAR(waited({.seconds = 1, .turns = 10}, {.seconds = 1.00004, .turns = 12}), 0, 1e-9);
  EXPECT_NEAR(waited({.seconds = 1, .turns = 10}, {.seconds = 1.004, .turns = 11}), 0.00398, 1e-9);
  EXPECT_EQ(waited({.seconds = 2, .turns = 10}, {.seconds = 1, .turns = 5}), 0)
      << "a thread has ended";
}

// --- recorded repetitions ------------------------------------------------------------------------

struct Recorded {
  std::string work;
  std::string disturbance;
  int threads;
  std::vector<Repetition> repetitions;
  std::vector<bool> is_disturbed;  // true if another program is known to have run meanwhile
};

std::vector<Recorded> recorded() {
  std::ifstream file(testing_support::test_data() + "/quiet/repetitions.json");
  std::vector<Recorded> runs;
  const nlohmann::json json = nlohmann::json::parse(file);
  for (const auto& run : json.at("runs")) {
    Recorded& made = runs.emplace_back();
    made.work = run.at("work");
    made.disturbance = run.at("disturbance");
    made.threads = run.at("threads");
    const auto& rows = run.at("repetitions");
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto probe = [&run](std::size_t which) {
        const auto& row = run.at("probes").at(which);
        return Probe{{0, row.at(0)}, row.at(1)};
      };
      made.repetitions.push_back({.seconds = rows.at(i).at(0),
                                  .before = probe(i),
                                  .after = probe(i + 1),
                                  .waiting_share = rows.at(i).at(1),
                                  .settled = {0, run.at("settled_rate")}});
      made.is_disturbed.push_back(rows.at(i).at(2).get<double>() > 0);
    }
  }
  return runs;
}

std::vector<Repetition> part(const std::vector<Repetition>& all, std::size_t first,
                             std::size_t count) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

// Returns the quantile of the numbers.
double quantile(std::vector<double> numbers, double share) {
  std::sort(numbers.begin(), numbers.end());
  return numbers[static_cast<std::size_t>(share * static_cast<double>(numbers.size() - 1))];
}

// The rule's results for the runs of one kind of work on one number of threads. Times are divided
// by that of an undisturbed call, the 5 % quantile of the repetitions.
struct Findings {
  int disturbed = 0, let_through = 0;
  int slow = 0, slow_let_through = 0;  // the disturbed repetitions that lost 10 % or more
  int fast = 0, fast_dropped = 0;      // all repetitions that lost less
  // Medians of simulated measurements of 20 repetitions: over the quiet repetitions and over all.
  std::vector<double> quiet_medians, all_medians;

  void add(const Recorded& run, double undisturbed) {
    constexpr std::size_t kMeasurement = 20;
    for (std::size_t first = 0; first + kMeasurement <= run.repetitions.size();
         first += kMeasurement) {
      const std::vector<Repetition> repetitions = part(run.repetitions, first, kMeasurement);
      const Rates rates = undisturbed_rates(repetitions);
      const std::vector<bool> quiet = are_quiet(repetitions, rates);
      std::vector<double> seconds;
      for (std::size_t i = 0; i < kMeasurement; ++i) {
        seconds.push_back(repetitions[i].seconds);
        count(run.is_disturbed[first + i], seconds.back() > 1.1 * undisturbed, quiet[i]);
      }
      all_medians.push_back(median(std::move(seconds)) / undisturbed);
      const Timing timing = summarize(repetitions, rates);
      if (timing.quiet > 0) quiet_medians.push_back(timing.median_seconds / undisturbed);
    }
  }

 private:
  void count(bool is_disturbed, bool is_slow, bool is_quiet) {
    if (is_disturbed) {
      ++disturbed;
      let_through += is_quiet ? 1 : 0;
      slow += is_slow ? 1 : 0;
      slow_let_through += is_slow && is_quiet ? 1 : 0;
    }
    if (!is_slow) {
      ++fast;
      fast_dropped += is_quiet ? 0 : 1;
    }
  }
};

// Returns the range of the middle eight of ten medians.
std::string range_of(const std::vector<double>& medians) {
  return fmt::format("{:.2f} to {:.2f}", quantile(medians, 0.1), quantile(medians, 0.9));
}

std::map<std::string, Findings> findings() {
  std::map<std::string, std::vector<double>> seconds;
  const std::vector<Recorded> runs = recorded();
  const auto name_of = [](const Recorded& run) {
    return fmt::format("{}, {} thread{}", run.work, run.threads, run.threads > 1 ? "s" : "");
  };
  for (const Recorded& run : runs) {
    for (const Repetition& one : run.repetitions) seconds[name_of(run)].push_back(one.seconds);
  }
  std::map<std::string, Findings> found;
  for (const Recorded& run : runs) {
    found[name_of(run)].add(run, quantile(seconds[name_of(run)], 0.05));
  }
  return found;
}

std::string text_of(const Findings& found) {
  return fmt::format(
      "let through {} of {}, of slow ones {} of {}; dropped {} of {} fast ones; {} of {} "
      "measurements, medians {}, all {}",
      found.let_through, found.disturbed, found.slow_let_through, found.slow, found.fast_dropped,
      found.fast, found.quiet_medians.size(), found.all_medians.size(),
      range_of(found.quiet_medians), range_of(found.all_medians));
}

// docs/performance.md contains these numbers.
TEST(BenchStatistics, TellsRecordedRepetitionsApart) {
  const std::map<std::string, std::string> expected{
      {"long, 1 thread",
       "let through 2 of 214, of slow ones 0 of 202; dropped 107 of 173 fast ones; "
       "23 of 30 measurements, medians 1.00 to 1.06, all 1.04 to 2.25"},
      {"long, 2 threads",
       "let through 0 of 160, of slow ones 0 of 138; dropped 185 of 202 fast ones; "
       "8 of 30 measurements, medians 1.01 to 1.07, all 1.03 to 1.65"},
      {"memory, 1 thread",
       "let through 12 of 230, of slow ones 11 of 190; dropped 86 of 102 fast ones; "
       "16 of 24 measurements, medians 0.98 to 1.29, all 1.13 to 1.40"},
      {"memory, 2 threads",
       "let through 0 of 179, of slow ones 0 of 178; dropped 77 of 93 fast ones; "
       "7 of 24 measurements, medians 0.93 to 1.19, all 1.12 to 1.43"},
      {"short, 1 thread",
       "let through 66 of 269, of slow ones 14 of 172; dropped 154 of 310 fast ones; "
       "28 of 30 measurements, medians 1.02 to 1.11, all 1.02 to 1.37"},
      {"short, 2 threads",
       "let through 10 of 171, of slow ones 7 of 155; dropped 72 of 88 fast ones; "
       "15 of 30 measurements, medians 0.96 to 1.92, all 1.14 to 1.97"}};
  std::map<std::string, std::string> found;
  for (const auto& [name, one] : findings()) found[name] = text_of(one);
  EXPECT_THAT(found, testing::ContainerEq(expected));
}

TEST(BenchStatistics, FewSlowRepetitionsAreLetThrough) {
  int slow = 0;
  int let_through = 0;
  for (const auto& [name, one] : findings()) {
    slow += one.slow;
    let_through += one.slow_let_through;
  }
  EXPECT_GT(slow, 1000);
  EXPECT_LT(let_through, slow / 20);
}

}  // namespace
}  // namespace heed::cli
