// The rate of forward attention in operations per second: 4 · visible pairs · dim.
#include "heed/attention.h"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "heed/attention/fma_rate.h"
#include "heed/attention/position.h"
#include "heed/core/parallel.h"
#include "heed/core/random.h"

namespace heed { namespace {

constexpr std::int64_t kNumHeads = 8;

// The peak of one core with the instruction set in use.
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
    const Tensor<float> out = attention(in.query, in.key, in.value, options);
    benchmark::DoNotOptimize(out.data());
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
// A modification of scores between the two products, at length 2048: compared with full/2048/64.
struct Modification {
  const char* name;
  std::function<void(AttentionOptions&)> set;
};

void modified(benchmark::State& state, const Modification& modification) {
  AttentionOptions options;
  modification.set(options);
  measure(state, options, 1);
}

Mask random_mask(std::int64_t length) {
  const Tensor<std::int64_t> bits = TorchGenerator(1).randint(0, 2, {length, length});
  Tensor<bool> allowed(bits.shape());
  std::transform(bits.elements().begin(), bits.elements().end(), allowed.elements().begin(),
                 [](std::int64_t bit) { return bit != 0; });
  return Mask::allow(std::move(allowed));
}

const std::vector<Modification>& modifications() {
  constexpr std::int64_t kLength = 2048;
  static const Tensor<float> bias = TorchGenerator(2).randn({kNumHeads, kLength, kLength});
  static const Tensor<float> slopes = alibi_slopes(kNumHeads);
  static const Mask allowed = random_mask(kLength);
  static const std::vector<Modification> all = {
      {"softcap", [](auto& options) { options.softcap = 30; }},
      {"dropout", [](auto& options) { options.dropout = {.probability = 0.1F, .seed = 1}; }},
      {"alibi", [](auto& options) { options.alibi_slopes = slopes; }},
      {"bias_per_head", [](auto& options) { options.bias = bias; }},
      {"bias", [](auto& options) { options.bias = bias.view().slice(0, 0, 1); }},
      {"bias_per_key", [](auto& options) { options.bias = bias.view().slice(1, 0, 1); }},
      {"mask_allow_half", [](auto& options) { options.mask = allowed; }},
      {"mask_where_half",
       [](auto& options) {
         options.mask = Mask::where([](int, int, int q, int k) { return ((q ^ k) & 1) == 0; });
       }},
      {"mask_where_causal",
       [](auto& options) {
         options.mask = Mask::where([](int, int, int q, int k) { return k <= q; });
       }},
      {"relative_bias",
       [](auto& options) {
         options.score_mod = [](auto score, int, int, int q_idx, int kv_idx) {
           return score - 0.01F * static_cast<float>(q_idx - kv_idx);
         };
       }},
      {"branch",
       [](auto& options) {
         options.score_mod = [](auto score, int, int, int q_idx, int kv_idx) {
           return q_idx - kv_idx > 64 ? score * 0.5F : score;
         };
       }},
      {"tanh",
       [](auto& options) {
         options.score_mod = [](auto score, int, int, int, int) {
           return 30.0F * heed::tanh(score * (1 / 30.0F));
         };
       }},
  };
  return all;
}

const std::vector<std::vector<std::int64_t>> kLengthsAndDims{{128, 512, 1024, 2048, 4096},
                                                             {64, 128}};
BENCHMARK(full)->ArgsProduct(kLengthsAndDims)->UseRealTime();
BENCHMARK(causal_square)->ArgsProduct(kLengthsAndDims)->UseRealTime();

const bool kModificationsAreRegistered = [] {
  for (const Modification& modification : modifications()) {
    benchmark::RegisterBenchmark(modification.name, modified, modification)
        ->Args({2048, 64})
        ->UseRealTime();
  }
  return true;
}();

}  // namespace
}  // namespace heed
