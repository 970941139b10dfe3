// Measures of tensors that several lessons use.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>

#include "heed/core/tensor.h"

namespace heed::learn {

// Returns the largest |a − b| of two tensors of one shape.
double max_difference(FloatView a, FloatView b);

struct Spread {
  double mean = 0;
  double deviation = 0;  // the standard deviation of a sample, divided by n − 1
};
Spread spread(FloatView values);

double largest(FloatView values);

// Returns a vector as text, "[0.8995, 0.1005]".
std::string list(FloatView vector, int decimals = 4);

// Returns 512000000 as "512,000,000".
std::string grouped(std::int64_t number);

// Returns the matrix [q_len, kv_len] of one batch entry and head of `scores`, which must outlive
// it.
FloatView matrix_of(const Tensor<float>& scores, std::int64_t batch = 0, std::int64_t head = 0);

// Returns the shortest time of `runs` runs in milliseconds: disturbances only make a run longer.
template <class Run>
double shortest_run(int runs, Run run) {
  using Clock = std::chrono::steady_clock;
  double shortest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    run();
    const std::chrono::duration<double, std::milli> elapsed = Clock::now() - start;
    shortest = std::min(shortest, elapsed.count());
  }
  return shortest;
}

}  // namespace heed::learn
