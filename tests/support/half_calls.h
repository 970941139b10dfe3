// Calls of bfloat16 with the kernels of one table, before results are rounded, and their errors.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>

#include "attention/plan/fused.h"
#include "attention/request/call.h"
#include "heed/attention/reference.h"
#include "heed/core/convert.h"
#include "heed/core/parallel.h"
#include "support/exact.h"
#include "support/fused.h"
#include "support/tensors.h"

namespace heed::testing_support {

using HalfViews = BasicInputViews<BFloat16>;

struct HalfInputs {
  Tensor<BFloat16> query;
  Tensor<BFloat16> key;
  Tensor<BFloat16> value;

  explicit HalfInputs(const InputViews& in)
      : query(heed::converted<BFloat16>(in.query)),
        key(heed::converted<BFloat16>(in.key)),
        value(heed::converted<BFloat16>(in.value)) {}
  explicit HalfInputs(const Sizes& sizes, float magnitude = 1)
      : HalfInputs(InputViews(Inputs(sizes, magnitude))) {}

  // NOLINTNEXTLINE(google-explicit-constructor): as a tensor is passed as a view
  operator HalfViews() const { return {query, key, value}; }
};

// The way in which a problem is computed; no choice may change a bit.
struct Path {
  bool few_rows = true;  // allows the decode path
  int threads = 1;
};

inline Request<float> request_of(const HalfViews& in, const AttentionOptions& options) {
  return check_request("attention", check_shapes("attention", in.query, in.key, in.value), options);
}

// Returns the result of a call that uses pairs, before rounding to bfloat16.
inline AttentionOutput<float> attend(const kernels::KernelTable& table, const HalfViews& in,
                                     const AttentionOptions& options, const Path& path = {}) {
  const auto request = request_of(in, options);
  auto schedule = engine::make_schedule(table, request, engine::Pass::kForward, 1);
  EXPECT_TRUE(schedule.stages_pairs);
  if (!path.few_rows) schedule = engine::in_whole_vectors(schedule);
  schedule.workers = path.threads;
  if (path.threads > 1) {
    schedule.panels_per_block = 1;
    schedule.key_chunks = std::max<std::int64_t>(
        1, (request.shape.kv_len + kernels::kChunkKeys - 1) / kernels::kChunkKeys);
  }
  const Shape rows{in.query.extent(0), in.query.extent(1), in.query.extent(2)};
  AttentionOutput<float> result{Tensor<float>({rows[0], rows[1], rows[2], in.value.extent(3)}),
                                Tensor<float>(rows), Tensor<float>(rows)};
  const ForwardCall<float> call{call_of(request, in.query, in.key, in.value),
                                rows_of(result.out.view()), result.lse, result.lse_low};
  set_num_threads(path.threads);
  FusedPass<float>(table, schedule, engine::Pass::kForward).forward({&call, 1});
  set_num_threads(0);
  return result;
}

inline bool same_result(const AttentionOutput<float>& a, const AttentionOutput<float>& b) {
  return same_bits(a.out, b.out) && same_bits(a.lse, b.lse) && same_bits(a.lse_low, b.lse_low);
}

inline AttentionOutput<double> exact_of(const HalfInputs& in, const AttentionOptions& options) {
  const ExactOptions exact(options);
  auto result =
      reference::attention(exactly(converted<float>(in.query)), exactly(converted<float>(in.key)),
                           exactly(converted<float>(in.value)), *exact);
  return {std::move(result.out), std::move(result.lse)};
}

// Returns an empty text if the error is at most twice that of the plain computation in the same
// precision.
inline std::string inaccuracy(const kernels::KernelTable& table, const HalfInputs& in,
                              const AttentionOptions& options) {
  const auto found = attend(table, in, options);
  const auto plain = reference::attention(in.query, in.key, in.value, options);
  const auto exact = exact_of(in, options);
  // A weight is off by at most half a unit of bfloat16. Where one weight is nearly 1, the plain
  // computation may be lucky to round it to 1.
  const Judgement of_out{.always_allowed = 0x1p-9 * std::max(1.0, largest_magnitude(exact.out))};
  // The same holds for a score of one row, a sum of as many products as there are dimensions.
  const double units = std::max(1.0, std::sqrt(static_cast<double>(in.query.extent(3)) / 16));
  const Judgement of_lse{.always_allowed =
                             units * 0x1p-23 * std::max(1.0, largest_magnitude(exact.lse))};
  return of_out("out", found.out, plain.out, exact.out) +
         of_lse("lse", found.lse, plain.lse, exact.lse);
}

}  // namespace heed::testing_support
