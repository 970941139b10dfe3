#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "attention/engine/passes.h"
#include "heed/attention/reference.h"
#include "heed/core/parallel.h"
#include "support/kernel_tables.h"
#include "support/statistics.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::Inputs;
using testing_support::normal;
using testing_support::WeightJob;

using testing_support::kInfinity;

template <class T>
AttentionDiagnostics diagnose(const kernels::KernelTable& table, TensorView<const T> query,
                              TensorView<const T> key, const AttentionOptions& options,
                              const DiagnosticsOptions& lengths) {
  const WeightJob<T> job(table, query, key, options);
  return job.pass.diagnose(job.call, lengths);
}

// Returns all diagnostics as numbers.
std::vector<double> numbers_of(const AttentionDiagnostics& found) {
  std::vector<double> numbers;
  for (const HeadDiagnostics& head : found.heads) {
    numbers.insert(numbers.end(),
                   {static_cast<double>(head.rows), static_cast<double>(head.broken_rows),
                    head.entropy, head.total, head.padding, head.first, head.previous, head.same,
                    head.next, head.offset_weight, static_cast<double>(head.offset), head.vertical,
                    static_cast<double>(head.vertical_key)});
  }
  for (const double similarity : found.similarity.elements()) numbers.push_back(similarity);
  return numbers;
}

// Expects the reference's result, except for float rounding, on every instruction set.
void expect_reference(const Inputs& in, const AttentionOptions& options,
                      const DiagnosticsOptions& lengths, const std::string& what) {
  const auto expected =
      numbers_of(reference::attention_diagnostics(in.query, in.key, options, lengths));
  for (const auto* table : testing_support::kernels_of_numbers()) {
    const auto found = numbers_of(diagnose<float>(*table, in.query, in.key, options, lengths));
    EXPECT_THAT(found, testing::Pointwise(testing::DoubleNear(2e-6), expected))
        << what << " on " << table->name;
  }
}

TEST(FusedHeadPatterns, AwkwardLengths) {
  for (const std::int64_t q_len : {1, 2, 17, 49, 97, 193}) {
    for (const std::int64_t kv_len :
         {std::int64_t{1}, std::int64_t{127}, std::int64_t{129}, std::int64_t{300}, q_len}) {
      const Inputs in({.num_heads = 2, .num_kv_heads = 2, .q_len = q_len, .kv_len = kv_len}, 2);
      const std::string what = std::to_string(q_len) + "x" + std::to_string(kv_len);
      expect_reference(in, {}, {}, what);
      expect_reference(in, {.mask = causal_bottom_right()}, {}, what + " bottom right");
    }
  }
}

TEST(FusedHeadPatterns, GroupsAndLengths) {
  for (const std::int64_t kv_heads : {1, 2, 3, 6}) {
    const Inputs in({.batch = 2,
                     .num_heads = 6,
                     .num_kv_heads = kv_heads,
                     .q_len = 100,
                     .kv_len = 140,
                     .head_dim = 8},
                    3);
    const DiagnosticsOptions lengths{.q_lengths = {100, 33}, .kv_lengths = {131, 64}};
    const std::string what = std::to_string(kv_heads) + " key heads";
    expect_reference(in, {}, lengths, what + ", padding seen");
    expect_reference(in, {.mask = key_lengths({131, 64})}, lengths, what);
  }
}

TEST(FusedHeadPatterns, Segments) {
  const Inputs in({.num_heads = 2, .num_kv_heads = 1, .q_len = 900, .kv_len = 260, .head_dim = 8},
                  3);
  expect_reference(in, {.mask = sliding_window(40, 3, Alignment::top_left())}, {}, "segments");
}

TEST(FusedHeadPatterns, OptionsThatChangeWhatIsSeen) {
  const Inputs in({.batch = 2, .num_heads = 4, .num_kv_heads = 2, .q_len = 60, .kv_len = 150}, 2);
  const Tensor<float> sinks({4}, {0.0F, 9.0F, -kInfinity, 1.0F});
  Tensor<float> bias = normal<float>({4, 1, 150}, 9);
  for (std::int64_t i = 0; i < bias.num_elements(); i += 3) bias.data()[i] = -kInfinity;
  AttentionOptions options;
  options.sinks = sinks;
  expect_reference(in, options, {}, "sinks");
  options.bias = bias;
  expect_reference(in, options, {}, "bias");
  options.query_offset = 50;
  options.mask = causal(0) & Mask::where([](int b, int h, int q, int k) {
                   return (b + h + q + k) % 3 != 0 && (h != 2 || k == 7);
                 });
  expect_reference(in, options, {}, "where");
  std::vector<RowRange> ranges;
  for (std::int64_t q = 0; q < 60; ++q) ranges.push_back({q % 3 == 0 ? q : q / 2, q});
  expect_reference(in, {.mask = Mask::rows(ranges)}, {.kv_lengths = {20, 150}}, "rows");
}

TEST(FusedHeadPatterns, RowsThatAreNotFinite) {
  Inputs in({.num_heads = 3, .num_kv_heads = 3, .q_len = 70, .kv_len = 140}, 2);
  in.key(0, 1, 60, 3) = std::numeric_limits<float>::quiet_NaN();
  in.query(0, 2, 7, 0) = kInfinity;
  expect_reference(in, {.mask = causal_top_left()}, {}, "not finite");
}

TEST(FusedHeadPatterns, HalfPrecision) {
  const Inputs in({.num_heads = 2, .num_kv_heads = 1, .q_len = 50, .kv_len = 70}, 2);
  const auto narrow = [](const Tensor<float>& numbers) {
    Tensor<Float16> result(numbers.shape());
    for (std::int64_t i = 0; i < numbers.num_elements(); ++i) {
      result.data()[i] = Float16(numbers.data()[i]);
    }
    return result;
  };
  const auto query = narrow(in.query);
  const auto key = narrow(in.key);
  const auto widen = [](const Tensor<Float16>& numbers) {
    Tensor<float> result(numbers.shape());
    for (std::int64_t i = 0; i < numbers.num_elements(); ++i) {
      result.data()[i] = static_cast<float>(numbers.data()[i]);
    }
    return result;
  };
  const auto wide_query = widen(query);
  const auto wide_key = widen(key);
  for (const auto* table : testing_support::kernels_of_numbers()) {
    EXPECT_EQ(numbers_of(diagnose<Float16>(*table, query, key, {}, {})),
              numbers_of(diagnose<float>(*table, wide_query, wide_key, {}, {})))
        << table->name;
  }
}

TEST(FusedHeadPatterns, TheSameBitsOnAnyNumberOfThreads) {
  const Inputs in({.batch = 3, .num_heads = 2, .num_kv_heads = 1, .q_len = 500, .kv_len = 150});
  std::vector<double> first;
  for (const int threads : {1, 2, 5}) {
    const ThreadLimit limit(threads);
    const auto found = numbers_of(attention_diagnostics(in.query, in.key));
    if (first.empty()) first = found;
    EXPECT_EQ(found, first) << threads;
  }
}

TEST(FusedHeadPatterns, EmptySizes) {
  expect_reference(Inputs({.batch = 0, .q_len = 5, .kv_len = 5}), {}, {}, "no batch");
  expect_reference(Inputs({.num_heads = 0, .num_kv_heads = 0, .q_len = 5, .kv_len = 5}), {}, {},
                   "no heads");
  expect_reference(Inputs({.num_heads = 2, .num_kv_heads = 2, .q_len = 0, .kv_len = 5}), {}, {},
                   "no queries");
  expect_reference(Inputs({.num_heads = 2, .num_kv_heads = 2, .q_len = 5, .kv_len = 0}), {}, {},
                   "no keys");
}

}  // namespace
}  // namespace heed
