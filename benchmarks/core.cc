// The cost of the foundations: an empty loop, and the rate of dense products.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "heed/core/parallel.h"
#include "nn/blas.h"

namespace heed { namespace {

void empty_loop(benchmark::State& state) {
  for (auto _ : state) {
    parallel_for(0, state.range(0), 1,
                 [](std::int64_t first, std::int64_t) { benchmark::DoNotOptimize(first); });
  }
}
BENCHMARK(empty_loop)->Arg(1)->Arg(16)->Arg(1024)->UseRealTime();

/// [rows, width] times [width, width]; the counter is in operations per second.
void product(benchmark::State& state) {
  const std::int64_t rows = state.range(0);
  const std::int64_t width = state.range(1);
  const Tensor<float> a(Shape{rows, width});
  const Tensor<float> b(Shape{width, width});
  Tensor<float> out(Shape{rows, width});
  for (auto _ : state) matmul(a, b, out);
  state.counters["FLOP/s"] = benchmark::Counter(2.0 * static_cast<double>(rows * width * width),
                                                benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK(product)->ArgsProduct({{1, 128, 1024}, {256, 768}})->UseRealTime();

}  // namespace
}  // namespace heed
