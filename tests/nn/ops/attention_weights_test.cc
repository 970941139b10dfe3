// Attention weights in the graph: equal to attention's own, and their gradients.
#include "heed/nn/attention_weights.h"

#include <gtest/gtest.h>

#include <vector>

#include "heed/attention/reference.h"
#include "heed/attention/relative_position.h"
#include "support/gradcheck.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed::nn { namespace {

using testing_support::expect_refused;
using testing_support::gradient_error;
using testing_support::kGradientTolerance;
using testing_support::max_difference;
using testing_support::normal_variable;
using Variable64 = Variable<double>;

struct Inputs {
  Variable64 query = normal_variable({2, 4, 5, 3}, 1);
  Variable64 key = normal_variable({2, 2, 6, 3}, 2);
  Variable64 sinks = normal_variable({4}, 3);
  Variable64 bias = normal_variable({4, 1, 6}, 4);
};

TEST(RecordedWeights, AreThoseOfTheReference) {
  const Inputs in;
  const AttentionOptions64 options{
      .mask = causal(1), .softcap = 2, .dropout = {.probability = 0.5F, .seed = 1}};
  const Variable64 weights =
      attention_weights(in.query, in.key, options, {.bias = in.bias, .sinks = in.sinks});
  AttentionOptions64 same = options;
  same.dropout = {};
  same.bias = in.bias.value();
  same.sinks = in.sinks.value();
  const auto expected = reference::attention(in.query.value(), in.key.value(), in.key.value(), same,
                                             reference::Keep::kWeights);
  EXPECT_EQ(weights.shape(), (Shape{2, 4, 5, 6}));
  EXPECT_LE(max_difference(to_tensor(weights.value()), expected.weights), 1e-13);
}

TEST(RecordedWeights, HaveGradients) {
  const Inputs in;
  const AttentionOptions64 options{.mask = causal(1), .softcap = 2};
  const auto weights = [&] {
    return attention_weights(in.query, in.key, options, {.bias = in.bias, .sinks = in.sinks});
  };
  EXPECT_LE(gradient_error({in.query, in.key, in.bias, in.sinks}, weights), kGradientTolerance);
}

// Tables of relative values change no weight and are not read.
TEST(RecordedWeights, LeaveOutWhatIsAddedToValues) {
  const Inputs in;
  const auto buckets = RelativeBuckets::clip(2);
  const Variable64 keys = normal_variable({buckets.count(), 3}, 5);
  const Variable64 values = normal_variable({buckets.count(), 7}, 6);
  AttentionOptions64 options;
  options.relative_vectors = {std::nullopt, std::nullopt, buckets};
  const auto weights = [&] {
    return attention_weights(in.query, in.key, options,
                             {.relative_key = keys, .relative_value = values});
  };
  EXPECT_LE(gradient_error({in.query, in.key, keys}, weights), kGradientTolerance);
  const Variable64 plain = attention_weights(in.query, in.key, options, {.relative_value = values});
  const Variable64 without = attention_weights(in.query, in.key);
  EXPECT_LE(max_difference(to_tensor(plain.value()), to_tensor(without.value())), 0);
}

// The mean product of the weights of two heads, which a loss can minimise.
TEST(RecordedWeights, LossOnThemDrivesHeadsApart) {
  Variable64 query = normal_variable({1, 2, 4, 3}, 1);
  const Variable64 key = normal_variable({1, 2, 4, 3}, 2);
  const auto likeness = [&] {
    const Variable64 weights = attention_weights(query, key);
    const Variable64 first = slice(weights, 1, 0, 1);
    const Variable64 second = slice(weights, 1, 1, 2);
    return sum(first * second);
  };
  const auto number = [](const Variable64& x) { return x.value().elements()[0]; };
  const double before = number(likeness());
  for (int step = 0; step < 20; ++step) {
    query.zero_grad();
    likeness().backward();
    const auto gradient = query.grad().elements();
    auto elements = query.writable_value().elements();
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] -= 0.5 * gradient[i];
  }
  EXPECT_LT(number(likeness()), 0.7 * before);
}

TEST(RecordedWeights, RefuseWhatDoesNotFit) {
  const Inputs in;
  expect_refused([&] { attention_weights(in.query, in.sinks); }, {"key", "[4]"});
  expect_refused(
      [&] {
        attention_weights(in.query, normal_variable({2, 2, 6, 4}, 1));
      },
      "head_dim");
}

}  // namespace
}  // namespace heed::nn
