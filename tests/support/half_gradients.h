// Gradients of bfloat16 with the kernels of one table, before they are rounded, and their errors.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "attention/request/gradient_tensors.h"
#include "support/gradients.h"
#include "support/half_calls.h"

namespace heed::testing_support {

// Returns the rounding errors of numbers that are rounded to bfloat16.
inline Tensor<BFloat16> rest_of(const Tensor<float>& numbers) {
  auto rest = converted<float>(converted<BFloat16>(numbers));
  for (std::int64_t i = 0; i < rest.num_elements(); ++i) {
    rest.data()[i] = numbers.data()[i] - rest.data()[i];
  }
  return converted<BFloat16>(rest);
}

// The settings of the backward pass, which reads out as floats, or rounded with its rounding error.
struct WayBack {
  int threads = 1;
  bool reads_floats = false;
};

// Returns gradients before they are rounded to bfloat16.
inline AttentionGradients<float> differentiate(const kernels::KernelTable& table,
                                               const HalfViews& in,
                                               const Tensor<BFloat16>& grad_out,
                                               const AttentionOptions& options,
                                               const WayBack& way = {}) {
  const auto forward = attend(table, in, options);
  const auto out = converted<BFloat16>(forward.out);
  const auto low = rest_of(forward.out);
  const auto request = request_of(in, options);
  auto schedule = engine::make_schedule(table, request, engine::Pass::kBackward, way.threads);
  EXPECT_TRUE(schedule.stages_pairs);
  schedule.workers = way.threads;
  GradientTensors<float> gradients(request, in.query.shape(), in.key.shape(), in.value.shape());
  const BackwardCall<float> call{
      call_of(request, in.query, in.key, in.value),
      rows_of(BFloat16View(grad_out)),
      way.reads_floats ? rows_of(FloatView(forward.out)) : rows_of(BFloat16View(out)),
      forward.lse,
      gradients.targets(),
      forward.lse_low,
      way.reads_floats ? Rows{} : rows_of(BFloat16View(low))};
  set_num_threads(way.threads);
  FusedPass<float>(table, schedule, engine::Pass::kBackward).backward({&call, 1});
  set_num_threads(0);
  return std::move(gradients).take();
}

inline Tensor<BFloat16> grad_out_for(const HalfInputs& in) {
  return converted<BFloat16>(normal<float>(
      {in.query.extent(0), in.query.extent(1), in.query.extent(2), in.value.extent(3)}, 11));
}

inline AttentionGradients<double> exact_gradients_of(const HalfInputs& in,
                                                     const Tensor<BFloat16>& grad_out,
                                                     const AttentionOptions& options) {
  const ExactOptions exact(options);
  return reference::attention_backward(
      exactly(converted<float>(grad_out)), exactly(converted<float>(in.query)),
      exactly(converted<float>(in.key)), exactly(converted<float>(in.value)), *exact);
}

// Returns an empty text if the errors are at most twice those of the plain computation in the same
// precision.
inline std::string gradient_inaccuracy(const kernels::KernelTable& table, const HalfInputs& in,
                                       const AttentionOptions& options) {
  const auto grad_out = grad_out_for(in);
  const auto found = differentiate(table, in, grad_out, options);
  const auto plain = reference::attention_backward(grad_out, in.query, in.key, in.value, options);
  const auto exact = exact_gradients_of(in, grad_out, options);
  // Each gradient is a sum of terms that cancel. Its error is that of grad_out · out for rounded
  // weights, times the factor of the sum; over rows these errors add up like random steps. An
  // option has few gradients.
  const auto rows =
      static_cast<double>(in.query.extent(0) * in.query.extent(1) * in.query.extent(2));
  const double term = 2 * std::sqrt(static_cast<double>(in.value.extent(3)));
  const auto judge = [&](const char* name, const Tensor<float>& is, const Tensor<float>& by_loops,
                         const Tensor<double>& should_be, double cancelled = 0) {
    const auto count = static_cast<double>(std::max<std::int64_t>(should_be.num_elements(), 1));
    const Judgement judgement{.always_allowed =
                                  0x1p-8 * std::max(1.0, largest_magnitude(should_be)) +
                                  0x1p-9 * term * cancelled * std::sqrt(rows / count)};
    return judgement(name, is, by_loops, should_be);
  };
  // The largest distance of a query and a key, which multiplies a slope.
  std::int64_t farthest = 0;
  for (const std::int64_t offset : options.query_offset.values()) {
    farthest =
        std::max(farthest, std::abs(offset) + std::max(in.query.extent(2), in.key.extent(2)));
  }
  // Queries and keys are standard normal numbers.
  const double root_of_dim = std::sqrt(static_cast<double>(in.query.extent(3)));
  const double row = options.scale ? std::abs(double{*options.scale}) * root_of_dim : 1;
  return judge("query", found.query, plain.query, exact.query, row) +
         judge("key", found.key, plain.key, exact.key, row) +
         judge("value", found.value, plain.value, exact.value) +
         judge("alibi_slopes", found.alibi_slopes, plain.alibi_slopes, exact.alibi_slopes,
               static_cast<double>(farthest)) +
         judge("bias", found.bias, plain.bias, exact.bias, 1) +
         judge("sinks", found.sinks, plain.sinks, exact.sinks, 1);
}

}  // namespace heed::testing_support
