// The cost of statistics of attention, relative to attention of the same queries, keys and values.
#include "heed/attention/statistics.h"

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "heed/core/parallel.h"
#include "heed/core/random.h"

namespace heed { namespace {

constexpr std::int64_t kNumHeads = 8;

// Length 2048, 64 dimensions, one thread.
struct Inputs {
  Tensor<float> query;
  Tensor<float> key;
  Tensor<float> value;
  AttentionOptions options;

  explicit Inputs(bool is_causal) {
    TorchGenerator random(0);
    query = random.randn({1, kNumHeads, 2048, 64});
    key = random.randn({1, kNumHeads, 2048, 64});
    value = random.randn({1, kNumHeads, 2048, 64});
    if (is_causal) options.mask = causal();
  }
};

void attention_itself(benchmark::State& state) {
  const ThreadLimit one_thread(1);
  const Inputs in(state.range(0) != 0);
  for (auto _ : state) {
    const Tensor<float> out = attention(in.query, in.key, in.value, in.options);
    benchmark::DoNotOptimize(out.data());
  }
}
BENCHMARK(attention_itself)->ArgName("causal")->Arg(0)->Arg(1)->UseRealTime();

void statistics(benchmark::State& state) {
  const ThreadLimit one_thread(1);
  const Inputs in(state.range(0) != 0);
  for (auto _ : state) {
    const auto found =
        attention_statistics(in.query, in.key, in.options, {.top_k = state.range(1)});
    benchmark::DoNotOptimize(found.entropy.data());
  }
}
BENCHMARK(statistics)
    ->ArgNames({"causal", "top_k"})
    ->ArgsProduct({{0, 1}, {0, 4, 16, 64}})
    ->UseRealTime();

// Every key has a larger weight than the one before: the worst case for the largest weights.
void statistics_of_rising_weights(benchmark::State& state) {
  const ThreadLimit one_thread(1);
  Inputs in(false);
  in.options.score_mod = [](auto score, int /*b*/, int /*h*/, int /*q_idx*/, int kv_idx) {
    return 0 * score + 0.01F * static_cast<float>(kv_idx);
  };
  for (auto _ : state) {
    const auto found =
        attention_statistics(in.query, in.key, in.options, {.top_k = state.range(0)});
    benchmark::DoNotOptimize(found.entropy.data());
  }
}
BENCHMARK(statistics_of_rising_weights)->ArgName("top_k")->Arg(0)->Arg(4)->Arg(64)->UseRealTime();

// Every 64th query of every head.
void weights_of_some_rows(benchmark::State& state) {
  const ThreadLimit one_thread(1);
  const Inputs in(false);
  std::vector<AttentionRow> rows;
  for (std::int64_t h = 0; h < kNumHeads; ++h) {
    for (std::int64_t q = 0; q < 2048; q += 64) rows.push_back({0, h, q});
  }
  for (auto _ : state) {
    const Tensor<float> weights = attention_weights(in.query, in.key, rows, in.options);
    benchmark::DoNotOptimize(weights.data());
  }
}
BENCHMARK(weights_of_some_rows)->UseRealTime();

}  // namespace
}  // namespace heed
