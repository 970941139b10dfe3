// The gradients of linear attention compared with central differences, in double.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include "heed/attention/linear_attention.h"
#include "heed/core/parallel.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::max_difference;
using testing_support::normal;
using testing_support::same_bits;

template <class Real>
struct RecurrentCase {
  Tensor<Real> query, key, value, decay, beta, state, grad_out, grad_state;
  bool gated;
  bool delta;

  RecurrentCase(std::int64_t length, const Shape& decay_shape, const Shape& beta_shape, int rule)
      : query(normal<Real>({2, 4, length, 3}, 1)),
        key(normal<Real>({2, 2, length, 3}, 2)),
        value(normal<Real>({2, 2, length, 5}, 3)),
        decay(normal<Real>(decay_shape, 4)),
        beta(normal<Real>(beta_shape, 5)),
        state(normal<Real>({2, 2, 3, 5}, 6)),
        grad_out(normal<Real>({2, 4, length, 5}, 7)),
        grad_state(normal<Real>({2, 2, 3, 5}, 8)),
        gated(rule % 2 == 1),
        delta(rule / 2 == 1) {
    for (Real& g : decay.elements()) g = -std::abs(g) / 2;
    for (Real& x : key.elements()) x /= 2;
    for (Real& rate : beta.elements()) rate = 1 / (1 + std::exp(-rate));
  }

  BasicLinearAttentionOptions<Real> options() const {
    BasicLinearAttentionOptions<Real> result;
    if (gated) result.decay = decay;
    if (delta) result.beta = beta;
    result.state = state;
    result.scale = Real{0.7};
    return result;
  }

  Real loss() const {
    const auto output = linear_attention(query, key, value, options());
    Real sum = 0;
    const auto add = [&sum](const Tensor<Real>& x, const Tensor<Real>& weights) {
      for (std::size_t i = 0; i < x.elements().size(); ++i) {
        sum += x.elements()[i] * weights.elements()[i];
      }
    };
    add(output.out, grad_out);
    add(output.state, grad_state);
    return sum;
  }

  LinearAttentionGradients<Real> gradients() const {
    return linear_attention_backward({grad_out, grad_state}, query, key, value, options());
  }
};

void expect_central_differences(RecurrentCase<double>& c, Tensor<double>& at,
                                const Tensor<double>& grad, const std::string& what) {
  ASSERT_EQ(grad.shape(), at.shape()) << what;
  double largest = 0;
  for (std::size_t i = 0; i < at.elements().size(); ++i) {
    double& x = at.elements()[i];
    const double before = x;
    x = before + 1e-5;
    const double above = c.loss();
    x = before - 1e-5;
    const double below = c.loss();
    x = before;
    const double expected = (above - below) / 2e-5;
    largest = std::max(largest,
                       std::abs(grad.elements()[i] - expected) / std::max(1.0, std::abs(expected)));
  }
  EXPECT_LE(largest, 1e-7) << what;
}

TEST(LinearAttentionBackward, IsTheDerivativeWhereStatesShareKeysAndQueries) {
  for (const auto& [num_heads, num_kv_heads] :
       {std::array<std::int64_t, 2>{2, 2}, {2, 1}, {1, 1}, {8, 2}}) {
    RecurrentCase<double> c(5, {2, 4, 5, 3}, {2, 4, 5}, 3);
    c.query = normal<double>({2, num_heads, 5, 3}, 1);
    c.key = normal<double>({2, num_kv_heads, 5, 3}, 2);
    c.value = normal<double>({2, 4, 5, 5}, 3);
    c.state = normal<double>({2, 4, 3, 5}, 6);
    c.grad_out = normal<double>({2, std::max<std::int64_t>(num_heads, 4), 5, 5}, 7);
    c.grad_state = normal<double>({2, 4, 3, 5}, 8);
    const auto gradients = c.gradients();
    const std::string what = std::to_string(num_heads) + ", " + std::to_string(num_kv_heads);
    expect_central_differences(c, c.query, gradients.query, "query " + what);
    expect_central_differences(c, c.key, gradients.key, "key " + what);
    expect_central_differences(c, c.value, gradients.value, "value " + what);
    expect_central_differences(c, c.decay, gradients.decay, "decay " + what);
    expect_central_differences(c, c.beta, gradients.beta, "beta " + what);
    expect_central_differences(c, c.state, gradients.state, "state " + what);
    const ThreadLimit limit(1);
    EXPECT_TRUE(same_bits(c.gradients().key, gradients.key)) << what;
    EXPECT_TRUE(same_bits(c.gradients().query, gradients.query)) << what;
  }
}

TEST(LinearAttentionBackward, IsTheDerivative) {
  for (const int rule : {0, 1, 2, 3}) {
    for (const bool is_shared : {false, true}) {
      RecurrentCase<double> c(4, is_shared ? Shape{2, 4, 1} : Shape{2, 2, 4, 3},
                              is_shared ? Shape{2, 1, 4} : Shape{2, 2, 4}, rule);
      const auto gradients = c.gradients();
      const std::string what = "rule " + std::to_string(rule) + (is_shared ? ", shared " : ", ");
      expect_central_differences(c, c.query, gradients.query, what + "query");
      expect_central_differences(c, c.key, gradients.key, what + "key");
      expect_central_differences(c, c.value, gradients.value, what + "value");
      expect_central_differences(c, c.state, gradients.state, what + "state");
      if (c.gated) expect_central_differences(c, c.decay, gradients.decay, what + "decay");
      if (c.delta) expect_central_differences(c, c.beta, gradients.beta, what + "beta");
      EXPECT_EQ(gradients.decay.empty(), !c.gated);
      EXPECT_EQ(gradients.beta.empty(), !c.delta);
    }
  }
}

// Several chunks of kept states, complete and partial.
TEST(LinearAttentionBackward, LongSequences) {
  for (const std::int64_t length : {32, 64, 71}) {
    RecurrentCase<double> c(length, {2, 2, length, 3}, {2, 2, length}, 3);
    expect_central_differences(c, c.state, c.gradients().state, std::to_string(length));
  }
}

TEST(LinearAttentionBackward, NoTokensPassTheStateThrough) {
  const RecurrentCase<double> c(0, {2, 2, 0, 3}, {2, 2, 0}, 3);
  EXPECT_TRUE(same_bits(c.gradients().state, c.grad_state));
}

TEST(LinearAttentionBackward, FloatIsCloseAndTheSameOnAnyThreads) {
  const RecurrentCase<float> c(40, {2, 2, 40, 3}, {2, 2, 40}, 3);
  const RecurrentCase<double> exact(40, {2, 2, 40, 3}, {2, 2, 40}, 3);
  const auto found = c.gradients();
  const auto expected = exact.gradients();
  double largest = 0;
  for (std::size_t i = 0; i < found.key.elements().size(); ++i) {
    largest = std::max(largest, std::abs(found.key.elements()[i] - expected.key.elements()[i]));
  }
  EXPECT_LE(largest, 1e-4);
  const ThreadLimit limit(1);
  EXPECT_TRUE(same_bits(c.gradients().key, found.key));
  EXPECT_TRUE(same_bits(c.gradients().decay, found.decay));
}

}  // namespace
}  // namespace heed
