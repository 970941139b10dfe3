#include "bench/peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <thread>

#include "heed/attention/fma_rate.h"

namespace heed::cli {

namespace {

using PeakClock = std::chrono::steady_clock;

// Starts threads together. A thread that gets no processor is waited for at most 1 ms; its own rate
// is then low.
class Start {
 public:
  explicit Start(int threads) : missing_(threads) {}

  void wait() {
    constexpr std::chrono::milliseconds kLongest(1);
    const auto end = PeakClock::now() + kLongest;
    --missing_;
    while (missing_ > 0 && PeakClock::now() < end) std::this_thread::yield();
  }

 private:
  std::atomic<int> missing_;
};

// Uses its own threads: parallel_for may run two parts on one thread one after the other, and each
// part would then have the core to itself.
double rate_now(int threads) {
  constexpr double kSeconds = 5e-4;
  std::vector<double> rates(static_cast<std::size_t>(threads));
  Start start(threads);
  const auto measure = [&start](double& rate) {
    start.wait();
    rate = measure_fma_rate(kSeconds);
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < rates.size(); ++i) {
      others.emplace_back([&measure, &rate = rates[i]] { measure(rate); });
    }
    measure(rates.front());
  }
  return threads * *std::min_element(rates.begin(), rates.end());
}

// Returns the rates so far of as many threads. After a rest the first milliseconds can run at a
// higher clock than the following (seen: 215 GFLOP/s, then 180), so they are not counted.
std::vector<double>& rates_of(int threads) {
  constexpr int kFirst = 10;
  constexpr std::chrono::milliseconds kLonger(250);
  static std::map<int, std::vector<double>> rates_by_threads;
  std::vector<double>& rates = rates_by_threads[threads];
  if (!rates.empty()) return rates;
  for (int i = 0; i < kFirst; ++i) rate_now(threads);
  const auto end = PeakClock::now() + kLonger;
  do {
    rates.push_back(rate_now(threads));
  } while (PeakClock::now() < end);
  return rates;
}

}  // namespace

void measure_peak(int threads) {
  std::vector<double>& rates = rates_of(threads);
  rates.push_back(rate_now(threads));
}

double peak_rate(int threads) { return undisturbed_rate(rates_of(threads)); }

double undisturbed_rate(std::vector<double> rates) {
  constexpr std::size_t kWorst = 2;
  const std::size_t rank = std::min(rates.size() / 10, kWorst);
  std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(rank), rates.end(),
                   std::greater<>());
  return rates[rank];
}

}  // namespace heed::cli
