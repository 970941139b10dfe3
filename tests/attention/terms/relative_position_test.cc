// Learned tables of relative positions: a bias for each distance, and vectors for keys and values.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "attention/plan/fused.h"
#include "attention/reference/passes.h"
#include "attention/request/gradient_tensors.h"
#include "heed/attention/diagnostics.h"
#include "heed/attention/kv_cache.h"
#include "heed/attention/plan.h"
#include "heed/attention/reference.h"
#include "heed/attention/statistics.h"
#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "support/fused.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::max_difference;
using testing_support::normal;
using testing_support::same_bits;
using testing_support::TargetTest;

TEST(RelativeBuckets, ClipCountsDistances) {
  const auto buckets = RelativeBuckets::clip(3);
  EXPECT_EQ(buckets.count(), 7);
  EXPECT_EQ(buckets.reach(), 3);
  EXPECT_EQ(buckets.description(), "clip(3)");
  const std::vector<std::int64_t> expected{0, 0, 1, 2, 3, 4, 5, 6, 6};
  for (std::int64_t distance = -4; distance <= 4; ++distance) {
    EXPECT_EQ(buckets(distance), expected[static_cast<std::size_t>(distance + 4)]);
  }
  EXPECT_EQ(RelativeBuckets::clip(0).count(), 1);
}

// The results of transformers' T5Attention._relative_position_bucket, which tests/python calls.
TEST(RelativeBuckets, T5GrowsWiderWithTheLogarithm) {
  const auto both = RelativeBuckets::t5(32, 128);
  EXPECT_EQ(both.description(), "t5(32, 128)");
  const std::vector<std::pair<std::int64_t, std::int64_t>> of_both{
      {0, 0},  {-1, 1},   {-7, 7}, {-8, 8},   {-11, 8},   {-12, 9},  {-16, 10}, {-127, 15},
      {1, 17}, {-64, 14}, {7, 23}, {128, 31}, {-500, 15}, {500, 31}, {16, 26}};
  for (const auto& [distance, bucket] : of_both) EXPECT_EQ(both(distance), bucket) << distance;
  const auto causal = RelativeBuckets::t5(32, 128, false);
  EXPECT_EQ(causal.description(), "causal t5(32, 128)");
  const std::vector<std::pair<std::int64_t, std::int64_t>> of_causal{
      {5, 0}, {0, 0}, {-15, 15}, {-16, 16}, {-32, 21}, {-127, 31}, {-1000, 31}};
  for (const auto& [distance, bucket] : of_causal) EXPECT_EQ(causal(distance), bucket) << distance;
}

TEST(RelativeBuckets, RefusesWhatIsNoTable) {
  EXPECT_THROW(RelativeBuckets::clip(-1), InvalidArgument);
  EXPECT_THROW(RelativeBuckets::clip((1 << 20) + 1), InvalidArgument);
  EXPECT_THROW(RelativeBuckets::t5(3, 128), InvalidArgument);
  EXPECT_THROW(RelativeBuckets::t5(2, 128), InvalidArgument);
  EXPECT_THROW(RelativeBuckets::t5(32, 8), InvalidArgument);
  EXPECT_THROW(RelativeBuckets::t5(32, 16, false), InvalidArgument);
  EXPECT_NO_THROW(RelativeBuckets::t5(32, 17, false));
}

// Four heads that share key heads, with tables of all three kinds.
template <class Real>
struct TermCase {
  Tensor<Real> query, key, value, grad_out, bias, key_table, value_table;
  BasicAttentionOptions<Real> options;

  // `heads` is 1 for vectors that all heads share, or 4.
  explicit TermCase(const RelativeBuckets& buckets = RelativeBuckets::clip(3),
                    std::int64_t q_len = 60, std::int64_t kv_len = 300,
                    std::int64_t num_kv_heads = 2, std::int64_t heads = 4)
      : query(normal<Real>({2, 4, q_len, 12}, 1)),
        key(normal<Real>({2, num_kv_heads, kv_len, 12}, 2)),
        value(normal<Real>({2, num_kv_heads, kv_len, 7}, 3)),
        grad_out(normal<Real>({2, 4, q_len, 7}, 4)),
        bias(normal<Real>({4, buckets.count()}, 5)),
        key_table(table_of(heads, buckets.count(), 12, 6)),
        value_table(table_of(heads, buckets.count(), 7, 7)),
        options{.mask = causal_top_left(), .softcap = 20} {
    options.relative_bias = {bias.view(), buckets};
    options.relative_vectors = {key_table.view(), value_table.view(), buckets};
  }

  static Tensor<Real> table_of(std::int64_t heads, std::int64_t count, std::int64_t dim, int seed) {
    return heads == 1 ? normal<Real>({count, dim}, static_cast<std::uint32_t>(seed))
                      : normal<Real>({heads, count, dim}, static_cast<std::uint32_t>(seed));
  }

  Request<Real> request() const {
    const auto shapes = check_shapes("test", query.view(), key.view(), value.view());
    return check_request("test", shapes, options);
  }
  Problem<Real> problem() const { return {{request()}, query, key, value}; }

  AttentionOutput<Real> forward(const kernels::BasicKernelTable<Real>& table,
                                int threads = 2) const {
    const Request<Real> asked = request();
    AttentionOutput<Real> result{Tensor<Real>(grad_out.shape()),
                                 Tensor<Real>({2, 4, query.extent(2)})};
    const ForwardCall<Real> call{call_of<Real, Real>(asked, query.view(), key.view(), value.view()),
                                 rows_of(result.out.view()), result.lse};
    FusedPass<Real>(table, asked, Pass::kForward, threads).forward({&call, 1});
    return result;
  }
  AttentionGradients<Real> backward(const kernels::BasicKernelTable<Real>& table,
                                    const AttentionOutput<Real>& forward, int threads = 2) const {
    const Request<Real> asked = request();
    GradientTensors<Real> gradients(asked, query.shape(), key.shape(), value.shape());
    const BackwardCall<Real> call{
        call_of<Real, Real>(asked, query.view(), key.view(), value.view()),
        rows_of(grad_out.view()), rows_of(forward.out.view()), forward.lse, gradients.targets()};
    FusedPass<Real>(table, asked, Pass::kBackward, threads).backward({&call, 1});
    return std::move(gradients).take();
  }
  double loss() const {
    const auto out = reference::forward(problem(), {0, 2}).out;
    double sum = 0;
    for (std::int64_t i = 0; i < out.num_elements(); ++i) {
      sum += double{out.data()[i]} * double{grad_out.data()[i]};
    }
    return sum;
  }
};

// The formulas, from full score matrices.
TEST(RelativePosition, TheReferenceIsThePlainFormula) {
  TermCase<double> c(RelativeBuckets::clip(3), 5, 9);
  c.options.query_offset = std::vector<std::int64_t>{0, 2};
  c.options.mask = {};
  const auto found = reference::forward(c.problem(), {0, 2}).out;
  double largest = 0;
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t h = 0; h < 4; ++h)
      for (std::int64_t q = 0; q < 5; ++q) {
        double sum = 0;
        std::vector<double> out(7);
        for (std::int64_t k = 0; k < 9; ++k) {
          const std::int64_t entry = std::clamp<std::int64_t>(k - q - 2 * b, -3, 3) + 3;
          double score = 0;
          double added = 0;
          for (std::int64_t d = 0; d < 12; ++d) {
            score += c.query(b, h, q, d) * c.key(b, h / 2, k, d);
            added += c.query(b, h, q, d) * c.key_table(h, entry, d);
          }
          const double scale = 1 / std::sqrt(12.0);
          const double weight =
              std::exp(20 * std::tanh(scale * score / 20) + c.bias(h, entry) + scale * added);
          sum += weight;
          for (std::int64_t d = 0; d < 7; ++d) {
            out[static_cast<std::size_t>(d)] +=
                weight * (c.value(b, h / 2, k, d) + c.value_table(h, entry, d));
          }
        }
        for (std::int64_t d = 0; d < 7; ++d) {
          largest = std::max(largest,
                             std::abs(found(b, h, q, d) - out[static_cast<std::size_t>(d)] / sum));
        }
      }
  EXPECT_LT(largest, 1e-13);
}

void expect_gradients(TermCase<double>& c) {
  const auto found = reference::backward<double>(c.problem(), c.grad_out.view(), {0, 2});
  const auto expect_differences = [&](Tensor<double>& input, const Tensor<double>& gradient) {
    ASSERT_EQ(gradient.shape(), input.shape());
    for (std::int64_t i = 0; i < input.num_elements(); ++i) {
      double& x = input.data()[i];
      const double before = std::exchange(x, x + 1e-5);
      const double above = c.loss();
      x = before - 1e-5;
      const double below = c.loss();
      x = before;
      EXPECT_NEAR(gradient.data()[i], (above - below) / 2e-5, 1e-8);
    }
  };
  expect_differences(c.query, found.query);
  expect_differences(c.key, found.key);
  expect_differences(c.value, found.value);
  expect_differences(c.bias, found.relative_bias);
  expect_differences(c.key_table, found.relative_key);
  expect_differences(c.value_table, found.relative_value);
}

TEST(RelativePosition, TheReferenceHasItsGradients) {
  TermCase<double> c(RelativeBuckets::clip(3), 5, 9);
  expect_gradients(c);
  TermCase<double> shared(RelativeBuckets::t5(6, 5), 5, 9, 2, 1);
  shared.options.dropout = {.probability = 0.25F, .seed = 3};
  expect_gradients(shared);
}

TEST(RelativePosition, RefusesTablesThatDoNotFit) {
  const auto message_of = [](const TermCase<float>& c) -> std::string {
    try {
      attention(c.query, c.key, c.value, c.options);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  TermCase<float> c;
  EXPECT_EQ(message_of(c), "");
  const auto narrow = normal<float>({4, 6}, 1);
  c.options.relative_bias->table = narrow;
  EXPECT_EQ(message_of(c), "attention: relative_bias.table has shape [4, 6], expected [4, 7]");
  TermCase<float> keys;
  keys.options.relative_vectors->key = narrow;
  EXPECT_EQ(message_of(keys),
            "attention: relative_vectors.key has shape [4, 6], expected [7, 12] or [4, 7, 12]");
  TermCase<float> values;
  values.options.relative_vectors->value = values.key_table;
  EXPECT_EQ(message_of(values),
            "attention: relative_vectors.value has shape [4, 7, 12], expected [7, 7] or [4, 7, 7]");
}

// Weights depend neither on values nor on what is added to them.
TEST(RelativePosition, WeightsLeaveTheTableOfValuesOut) {
  const TermCase<float> c;
  AttentionOptions options = c.options;
  options.relative_vectors->value.reset();
  const std::vector<AttentionRow> rows{{1, 3, 59}, {0, 0, 0}};
  EXPECT_TRUE(same_bits(attention_weights(c.query, c.key, rows, c.options),
                        attention_weights(c.query, c.key, rows, options)));
  EXPECT_TRUE(same_bits(attention_statistics(c.query, c.key, c.options).entropy,
                        attention_statistics(c.query, c.key, options).entropy));
  EXPECT_TRUE(same_bits(reference::attention_weights(c.query, c.key, rows, c.options),
                        reference::attention_weights(c.query, c.key, rows, options)));
  EXPECT_TRUE(same_bits(attention_diagnostics(c.query, c.key, c.options).similarity,
                        attention_diagnostics(c.query, c.key, options).similarity));
}

TEST(RelativePosition, APlanPrintsIt) {
  const TermCase<float> c;
  const auto shapes = check_shapes("test", c.query.view(), c.key.view(), c.value.view());
  EXPECT_NE(plan(shapes, c.options)
                .to_string()
                .find("relative_bias[clip(3)], relative_keys[clip(3)], relative_values[clip(3)]"),
            std::string::npos)
      << plan(shapes, c.options).to_string();
}

class RelativePositionOn : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(RelativePositionOn);

template <class Real>
void expect_reference(const TermCase<Real>& c, const kernels::BasicKernelTable<Real>& table,
                      const std::string& what) {
  const double unit = sizeof(Real) == 4 ? 1e-6 : 4e-15;
  const auto expected = reference::forward(c.problem(), {0, 2});
  const auto found = c.forward(table);
  EXPECT_LT(max_difference(found.out, expected.out), 4 * unit) << what;
  EXPECT_LT(max_difference(found.lse, expected.lse), 4 * unit) << what;
  const auto gradients = c.backward(table, found);
  const auto plain = reference::backward<Real>(c.problem(), c.grad_out.view(), {0, 2});
  const auto expect_near = [&](const Tensor<Real>& one, const Tensor<Real>& other, double most) {
    ASSERT_EQ(one.shape(), other.shape()) << what;
    double largest = 1;
    for (const Real x : other.elements()) largest = std::max(largest, std::abs(double{x}));
    EXPECT_LT(max_difference(one, other), most * largest) << what;
  };
  expect_near(gradients.query, plain.query, 20 * unit);
  expect_near(gradients.key, plain.key, 20 * unit);
  expect_near(gradients.value, plain.value, 20 * unit);
  expect_near(gradients.relative_bias, plain.relative_bias, 20 * unit);
  expect_near(gradients.relative_key, plain.relative_key, 20 * unit);
  expect_near(gradients.relative_value, plain.relative_value, 20 * unit);
}

template <class Real>
void expect_reference(const kernels::BasicKernelTable<Real>& table) {
  const std::vector<RelativeBuckets> rules{RelativeBuckets::clip(3), RelativeBuckets::clip(0),
                                           RelativeBuckets::clip(150), RelativeBuckets::t5(8, 40),
                                           RelativeBuckets::t5(9, 200, false)};
  for (const RelativeBuckets& rule : rules) {
    for (const std::int64_t kv_len : {1, 128, 300, 1100}) {
      for (const std::int64_t num_kv_heads : {4, 2, 1}) {
        if (kv_len == 1100 && (num_kv_heads != 2 || rule.count() > 9)) continue;
        const std::string what = rule.description() + " of " + std::to_string(kv_len) +
                                 " keys and key heads " + std::to_string(num_kv_heads);
        TermCase<Real> c(rule, 60, kv_len, num_kv_heads, kv_len == 300 ? 4 : 1);
        if (kv_len == 1100) c.options.query_offset = std::vector<std::int64_t>{1040, 400};
        if (kv_len == 300) c.options.mask = sliding_window(80, 30, Alignment::top_left());
        if (kv_len == 128) c.options.dropout = {.probability = 0.2F, .seed = 3};
        expect_reference(c, table, what);
      }
    }
  }
}

TEST_P(RelativePositionOn, IsTheReference) {
  expect_reference(table());
  expect_reference(*table().in_double);
}

// Each table alone, with an irregular mask, and with scores so large that rows are computed
// exactly.
TEST_P(RelativePositionOn, EachAloneIsTheReference) {
  const auto& kernels = *table().in_double;
  for (int which = 0; which < 3; ++which) {
    TermCase<double> c(RelativeBuckets::clip(5), 77, 200);
    if (which != 0) c.options.relative_bias.reset();
    if (which != 1) c.options.relative_vectors->key.reset();
    if (which != 2) c.options.relative_vectors->value.reset();
    const auto gradients = c.backward(kernels, c.forward(kernels));
    EXPECT_EQ(gradients.relative_bias.empty(), which != 0);
    EXPECT_EQ(gradients.relative_key.empty(), which != 1);
    EXPECT_EQ(gradients.relative_value.empty(), which != 2);
    c.options.mask = Mask::where([](int, int h, int q, int k) { return (h + q * k) % 3 != 1; });
    const auto expected = reference::forward(c.problem(), {0, 2});
    EXPECT_LT(max_difference(c.forward(kernels).out, expected.out), 1e-14);
    for (double& x : c.query.elements()) x *= 1e8;
    c.options.softcap = 0;
    const auto sharp = reference::forward(c.problem(), {0, 2});
    EXPECT_LT(max_difference(c.forward(kernels).out, sharp.out), 1e-6) << which;
  }
}

// The rows of attention_weights() are not adjacent.
TEST_P(RelativePositionOn, RowsByThemselvesHaveTheWeightsOfAll) {
  const TermCase<double> c(RelativeBuckets::t5(8, 40), 60, 300);
  const auto& kernels = *table().in_double;
  const auto request = c.request();
  const auto call = call_of<double, double>(request, c.query.view(), c.key.view(), c.value.view());
  const std::vector<AttentionRow> rows{{0, 3, 50}, {1, 0, 7}, {0, 2, 5}, {1, 1, 59}, {0, 2, 31}};
  const auto found = FusedPass<double>(kernels, request, Pass::kWeights, 1).weights(call, rows);
  const auto all = reference::forward(c.problem(), {0, 2}, reference::Keep::kWeights).weights;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::int64_t k = 0; k < 300; ++k) {
      EXPECT_NEAR(found(static_cast<std::int64_t>(i), k),
                  all(rows[i].batch, rows[i].head, rows[i].query, k), 1e-14);
    }
  }
}

// NaN in entries for distances that no query sees, and in queries that see nothing, has no effect.
TEST_P(RelativePositionOn, WhatSeesNothingAddsNothing) {
  const auto& kernels = table();
  for (const std::int64_t heads : {1, 4}) {
    TermCase<float> c(RelativeBuckets::clip(5), 60, 300, 2, heads);
    c.options.mask = causal(-2);
    const auto output = c.forward(kernels);
    const auto before = c.backward(kernels, output);
    const auto hide = [](Tensor<float>& table, std::int64_t dim) {
      constexpr std::int64_t kSeen = 4;  // distances of −5 to −2
      float* entry = table.data();
      for (std::int64_t i = 0; i < table.num_elements(); ++i) {
        if (i / dim % 11 >= kSeen) entry[i] = std::numeric_limits<float>::quiet_NaN();
      }
    };
    hide(c.bias, 1);
    hide(c.key_table, 12);
    hide(c.value_table, 7);
    for (std::int64_t h = 0; h < 4; ++h) {
      for (std::int64_t d = 0; d < 12; ++d) {
        c.query(0, h, 0, d) = c.query(1, h, 1, d) = std::numeric_limits<float>::quiet_NaN();
      }
    }
    const auto again = c.forward(kernels);
    EXPECT_TRUE(same_bits(again.out, output.out));
    EXPECT_TRUE(same_bits(again.lse, output.lse));
    const auto after = c.backward(kernels, again);
    EXPECT_TRUE(same_bits(after.query, before.query));
    EXPECT_TRUE(same_bits(after.key, before.key));
    EXPECT_TRUE(same_bits(after.value, before.value));
    EXPECT_TRUE(same_bits(after.relative_bias, before.relative_bias));
    EXPECT_TRUE(same_bits(after.relative_key, before.relative_key));
    EXPECT_TRUE(same_bits(after.relative_value, before.relative_value));
  }
}

TEST_P(RelativePositionOn, ThreadsChangeNoBit) {
  const auto& kernels = table();
  const TermCase<float> c(RelativeBuckets::clip(20), 600, 700, 2, 1);
  const auto output = c.forward(kernels, 1);
  const auto gradients = c.backward(kernels, output, 1);
  for (const int threads : {2, 3, 7}) {
    const auto again = c.forward(kernels, threads);
    EXPECT_TRUE(same_bits(again.out, output.out));
    const auto other = c.backward(kernels, again, threads);
    EXPECT_TRUE(same_bits(other.query, gradients.query));
    EXPECT_TRUE(same_bits(other.relative_bias, gradients.relative_bias));
    EXPECT_TRUE(same_bits(other.relative_key, gradients.relative_key));
    EXPECT_TRUE(same_bits(other.relative_value, gradients.relative_value));
  }
}

// One prefill, and one token at a time.
TEST(RelativePosition, CachesKnowWhereQueriesStand) {
  const auto query = normal<float>({1, 4, 300, 16}, 1);
  const auto key = normal<float>({1, 2, 300, 16}, 2);
  const auto value = normal<float>({1, 2, 300, 16}, 3);
  const auto buckets = RelativeBuckets::clip(40);
  const auto bias = normal<float>({4, 81}, 4);
  const auto keys = normal<float>({81, 16}, 5);
  const auto values = normal<float>({4, 81, 16}, 6);
  AttentionOptions options{.mask = causal()};
  options.relative_bias = {bias.view(), buckets};
  options.relative_vectors = {keys.view(), values.view(), buckets};
  const auto whole = attention(query, key, value, options);
  KvSequence sequence({.num_kv_heads = 2, .head_dim = 16});
  for (std::int64_t at = 0; at < 300;) {
    const std::int64_t count = std::min<std::int64_t>(at % 3 == 0 ? 1 : 59, 300 - at);
    const auto part = [&](const Tensor<float>& all) {
      return to_tensor(all.view().slice(2, at, at + count));
    };
    sequence.append(part(key), part(value));
    EXPECT_TRUE(same_bits(attend(part(query), sequence, options), part(whole))) << at;
    at += count;
  }
}

// For rotated keys or values only a bias by distance is meaningful.
TEST(RelativePosition, RotatedCachesRefuseVectors) {
  const auto x = normal<float>({1, 2, 5, 32}, 1);
  const auto table = normal<float>({3, 32}, 2);
  const auto numbers = normal<float>({2, 3}, 3);
  const auto buckets = RelativeBuckets::clip(1);
  const auto is_refused = [&](const KvConfig& config, const AttentionOptions& options) {
    KvSequence sequence(config);
    sequence.append(x, x);
    try {
      attend(x, sequence, options);
      return false;
    } catch (const InvalidArgument&) {
      return true;
    }
  };
  const KvConfig keys{.num_kv_heads = 2, .head_dim = 32, .key_storage = KvStorage::kInt4};
  const KvConfig values{.num_kv_heads = 2, .head_dim = 32, .value_storage = KvStorage::kInt4};
  AttentionOptions of_keys{.mask = causal()};
  of_keys.relative_vectors = {table.view(), std::nullopt, buckets};
  AttentionOptions of_values{.mask = causal()};
  of_values.relative_vectors = {std::nullopt, table.view(), buckets};
  AttentionOptions of_numbers{.mask = causal()};
  of_numbers.relative_bias = {numbers.view(), buckets};
  EXPECT_TRUE(is_refused(keys, of_keys));
  EXPECT_FALSE(is_refused(keys, of_values));
  EXPECT_FALSE(is_refused(values, of_keys));
  EXPECT_TRUE(is_refused(values, of_values));
  EXPECT_FALSE(is_refused(keys, of_numbers));
}

}  // namespace
}  // namespace heed
