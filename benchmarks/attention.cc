// The rate of forward attention, in operations a second: 4 · visible pairs · dim.
#include "heed/attention.h"

#include <benchmark/benchmark.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <vector>

#include "heed/parallel.h"
#include "heed/random.h"

namespace heed {
namespace {

constexpr std::int64_t kNumHeads = 8;

#if defined(__x86_64__)
// What one core can do at most with AVX-512: independent fused multiply-adds, nothing else.
__attribute__((target("avx512f"))) void fma_peak_avx512(benchmark::State& state) {
  constexpr int kChains = 16;
  constexpr int kSteps = 10000;
  __m512 sums[kChains];
  for (int i = 0; i < kChains; ++i) sums[i] = _mm512_set1_ps(static_cast<float>(i));
  __m512 factor = _mm512_set1_ps(0.999F);
  benchmark::DoNotOptimize(factor);
  for (auto _ : state) {
    for (int step = 0; step < kSteps; ++step) {
#pragma GCC unroll 16
      for (int i = 0; i < kChains; ++i) sums[i] = _mm512_fmadd_ps(sums[i], factor, factor);
    }
  }
  for (__m512& sum : sums) benchmark::DoNotOptimize(sum);
  state.counters["FLOP/s"] = benchmark::Counter(2.0 * 16 * kChains * kSteps,
                                                benchmark::Counter::kIsIterationInvariantRate);
}

void fma_peak(benchmark::State& state) {
  if (__builtin_cpu_supports("avx512f")) return fma_peak_avx512(state);
  state.SkipWithError("no AVX-512 here");
}
BENCHMARK(fma_peak);
#endif

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
