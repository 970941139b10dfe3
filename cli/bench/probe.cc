#include "bench/probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "heed/attention/fma_rate.h"
#include "heed/attention/plan.h"
#include "heed/core/parallel.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"

namespace heed::cli {

namespace {

using Clock = std::chrono::steady_clock;

// Reads one word of each cache line of the next MiB of kProbeBytes. By the time a MiB is read
// again, the caches of most processors hold other data.
double time_read() {
  constexpr std::size_t kSize = std::size_t{1} << 20;
  constexpr std::size_t kLine = 64;
  static std::vector<unsigned char> memory(kProbeBytes, 1);
  static std::atomic<std::size_t> next{0};
  static std::atomic<unsigned> sink{0};  // keeps the compiler from removing the loop
  const std::size_t first = next.fetch_add(kSize) % memory.size();
  const auto start = Clock::now();
  unsigned sum = 0;
  for (std::size_t i = first; i < first + kSize; i += kLine) sum += memory[i];
  sink += sum;
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns attention calls per second on this thread. The first, untimed call fills the cache.
double attention_rate() {
  constexpr int kCalls = 8;
  const ThreadLimit one_thread(1);
  static const Tensor<float> operand = TorchGenerator(0).randn<float>({1, 1, 128, 64});
  static const AttentionPlan planned = plan({.num_heads = 1,
                                             .num_kv_heads = 1,
                                             .q_len = operand.extent(2),
                                             .kv_len = operand.extent(2),
                                             .head_dim = operand.extent(3),
                                             .value_dim = operand.extent(3)});
  Tensor<float> out(operand.shape());
  std::vector<std::byte> workspace(planned.workspace_bytes());
  Clock::time_point start;
  for (int i = 0; i <= kCalls; ++i) {
    if (i == 1) start = Clock::now();
    planned.run_into({.out = out, .workspace = workspace}, operand, operand, operand);
  }
  return kCalls / std::chrono::duration<double>(Clock::now() - start).count();
}

// Starts threads together. A thread that gets no processor is waited for at most 1 ms; its own rate
// is then low.
class Start {
 public:
  explicit Start(int threads) : missing_(threads) {}

  void wait() {
    constexpr std::chrono::milliseconds kLongest(1);
    const auto end = Clock::now() + kLongest;
    --missing_;
    while (missing_ > 0 && Clock::now() < end) std::this_thread::yield();
  }

 private:
  std::atomic<int> missing_;
};

}  // namespace

double undisturbed_rate(std::vector<double> rates) {
  constexpr std::size_t kWorst = 2;
  const std::size_t rank = std::min(rates.size() / 10, kWorst);
  std::nth_element(rates.begin(), rates.begin() + static_cast<std::ptrdiff_t>(rank), rates.end(),
                   std::greater<>());
  return rates[rank];
}

Rates undisturbed_rates(const std::vector<Rates>& rates) {
  std::vector<double> fma;
  std::vector<double> attention;
  for (const Rates& one : rates) {
    fma.push_back(one.fma);
    attention.push_back(one.attention);
  }
  return {undisturbed_rate(std::move(fma)), undisturbed_rate(std::move(attention))};
}

Rates settle_machine(int threads) {
  constexpr int kFirst = 10;
  constexpr std::chrono::milliseconds kLonger(250);
  static std::map<int, Rates> settled;
  for (int i = 0; i < kFirst; ++i) probe_machine(threads);
  const auto found = settled.find(threads);
  if (found != settled.end()) return found->second;
  std::vector<Rates> rates;
  const auto end = Clock::now() + kLonger;
  do {
    rates.push_back(probe_machine(threads).rates);
  } while (Clock::now() < end);
  return settled[threads] = undisturbed_rates(rates);
}

// Uses its own threads: parallel_for may run two parts on one thread one after the other, and each
// part would then have the core to itself.
Probe probe_machine(int threads) {
  constexpr double kFmaSeconds = 5e-4;
  std::vector<Probe> probes(static_cast<std::size_t>(threads));
  Start start(threads);
  const auto probe = [&start](Probe& made) {
    start.wait();
    made.rates = {measure_fma_rate(kFmaSeconds), attention_rate()};
    made.read_seconds = time_read();
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < probes.size(); ++i) {
      others.emplace_back([&probe, &made = probes[i]] { probe(made); });
    }
    probe(probes.front());
  }
  Probe slowest = probes.front();
  for (const Probe& made : probes) {
    slowest.rates.fma = std::min(slowest.rates.fma, made.rates.fma);
    slowest.rates.attention = std::min(slowest.rates.attention, made.rates.attention);
    slowest.read_seconds = std::max(slowest.read_seconds, made.read_seconds);
  }
  slowest.rates.fma *= threads;
  slowest.rates.attention *= threads;
  return slowest;
}

}  // namespace heed::cli
