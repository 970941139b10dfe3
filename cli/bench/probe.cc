#include "bench/probe.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "heed/fma_rate.h"
#include "heed/nn/functional.h"
#include "heed/parallel.h"
#include "heed/tensor.h"

namespace heed::cli {

namespace {

// [64, 256] times [256, 256]: 0.1 ms, in the cache of one core. It feels what multiply-adds in
// registers do not: neighbours in the caches. The result is small enough for malloc to keep its
// pages.
double time_product() {
  static const Tensor<float> x({64, 256});
  static const LinearParameters<float> parameters{Tensor<float>({256, 256}), {}};
  const ThreadLimit one_thread(1);
  const auto start = std::chrono::steady_clock::now();
  linear(x, parameters);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

void settle_machine(int threads) {
  constexpr int kProbes = 10;
  for (int i = 0; i < kProbes; ++i) probe_machine(threads);
}

Probe probe_machine(int threads) {
  std::vector<Probe> probes(static_cast<std::size_t>(threads));
  parallel_for(0, threads, 1, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      probes[static_cast<std::size_t>(i)] = {measure_fma_rate(), time_product()};
    }
  });
  Probe slowest = probes.front();
  for (const Probe& probe : probes) {
    slowest.fma_rate = std::min(slowest.fma_rate, probe.fma_rate);
    slowest.product_seconds = std::max(slowest.product_seconds, probe.product_seconds);
  }
  slowest.fma_rate *= threads;
  return slowest;
}

}  // namespace heed::cli
