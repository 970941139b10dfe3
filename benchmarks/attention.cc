// The rate of forward attention, in operations a second: 4 · visible pairs · dim.
#include "heed/attention.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "heed/fma_rate.h"
#include "heed/parallel.h"
#include "heed/random.h"

namespace heed {
namespace {

constexpr std::int64_t kNumHeads = 8;

// What one core can do at most in the instruction set in use.
void fma_peak(benchmark::State& state) {
  double best = 0;
  for (auto _ : state) best = std::max(best, measure_fma_rate());
  state.counters["FLOP/s"] = best;
}
BENCHMARK(fma_peak);

struct Inputs {
  Tensor<float> query;
  Tensor<float> key;
  Tensor<float> value;

  Inputs(std::int64_t length, std::int64_t dim) {
    TorchGenerator random(0);
    query = random.randn({1, kNumHeads, length, dim});
    key = random.randn({1, kNumHeads, length, dim});
    value = random.randn({1, kNumHeads, length, dim});
  }
};

void measure(benchmark::State& state, const AttentionOptions& options, double visible_share) {
  const ThreadLimit one_thread(1);
  const std::int64_t length = state.range(0);
  const std::int64_t dim = state.range(1);
  const Inputs in(length, dim);
  for (auto _ : state) {
    benchmark::DoNotOptimize(attention(in.query, in.key, in.value, options).data());
  }
  const double operations = 4.0 * static_cast<double>(kNumHeads * length * length * dim);
  state.counters["FLOP/s"] =
      benchmark::Counter(operations * visible_share, benchmark::Counter::kIsIterationInvariantRate);
}

void full(benchmark::State& state) { measure(state, {}, 1); }
void causal_square(benchmark::State& state) {
  const auto length = static_cast<double>(state.range(0));
  measure(state, {.mask = causal()}, (length + 1) / (2 * length));
}
void relative_bias(benchmark::State& state) {
  AttentionOptions options;
  options.score_mod = [](auto score, int /*b*/, int /*h*/, int q_idx, int kv_idx) {
    return score - 0.01F * static_cast<float>(q_idx - kv_idx);
  };
  measure(state, options, 1);
}

const std::vector<std::vector<std::int64_t>> kLengthsAndDims{{128, 512, 1024, 2048, 4096},
                                                             {64, 128}};
BENCHMARK(full)->ArgsProduct(kLengthsAndDims)->UseRealTime();
BENCHMARK(causal_square)->ArgsProduct(kLengthsAndDims)->UseRealTime();
BENCHMARK(relative_bias)->Args({1024, 64})->UseRealTime();

}  // namespace
}  // namespace heed
