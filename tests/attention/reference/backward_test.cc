#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "heed/attention/reference.h"
#include "support/options.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::Each;
using testing_support::alone_and_in_pairs;
using testing_support::DrawnOptions;
using testing_support::elements_of;
using testing_support::normal;
using testing_support::Option;
using testing_support::options_where;
using testing_support::Refuses;
using testing_support::same_bits;

// A loss Σ grad_out ∘ attention(…), its gradients, and all of its inputs.
struct Loss {
  Tensor<double> query = normal<double>({2, 4, 3, 3}, 1);
  Tensor<double> key = normal<double>({2, 2, 5, 3}, 2);
  Tensor<double> value = normal<double>({2, 2, 5, 4}, 3);
  Tensor<double> grad_out = normal<double>({2, 4, 3, 4}, 4);
  std::deque<Tensor<double>> terms;  // that options refer to
  AttentionOptions64 options;

  double operator()() const {
    const Tensor<double> out = attention(query, key, value, options);
    double sum = 0;
    for (std::size_t i = 0; i < out.elements().size(); ++i) {
      sum += out.elements()[i] * grad_out.elements()[i];
    }
    return sum;
  }
};

void expect_central_differences(Loss& loss, Tensor<double>& wiggled, const Tensor<double>& gradient,
                                const std::string& name) {
  constexpr double kStep = 1e-5;
  ASSERT_EQ(gradient.shape(), wiggled.shape()) << name;
  for (std::size_t i = 0; i < wiggled.elements().size(); ++i) {
    double& element = wiggled.elements()[i];
    const double original = element;
    element = original + kStep;
    const double above = loss();
    element = original - kStep;
    const double below = loss();
    element = original;
    const double expected = (above - below) / (2 * kStep);
    ASSERT_NEAR(gradient.elements()[i], expected, 1e-8 * (1 + std::abs(expected)))
        << name << "[" << i << "]";
  }
}

void expect_central_differences(Loss& loss) {
  // Learned tensors are copied, so that each can be changed.
  std::vector<std::pair<const Learnable<double>*, Tensor<double>*>> learned;
  for (const Learnable<double>& term : kLearnable<double>) {
    if (const auto view = term.get(loss.options)) {
      learned.emplace_back(&term, &loss.terms.emplace_back(to_tensor(*view)));
      term.set(loss.options, loss.terms.back());
    }
  }
  const auto gradients =
      reference::attention_backward(loss.grad_out, loss.query, loss.key, loss.value, loss.options);
  expect_central_differences(loss, loss.query, gradients.query, "query");
  expect_central_differences(loss, loss.key, gradients.key, "key");
  expect_central_differences(loss, loss.value, gradients.value, "value");
  for (const auto& [term, tensor] : learned) {
    expect_central_differences(loss, *tensor, gradients.*term->gradient, term->name);
  }
}

TEST(AttentionBackward, AgreesWithCentralDifferences) {
  const testing_support::Sizes sizes{.batch = 2,
                                     .num_heads = 4,
                                     .num_kv_heads = 2,
                                     .q_len = 3,
                                     .kv_len = 5,
                                     .head_dim = 3,
                                     .value_dim = 4};
  std::vector<testing_support::Options> all =
      alone_and_in_pairs(options_where(&Option::is_option), 7);
  all.emplace_back();
  std::uint64_t seed = 0;
  for (const auto& chosen : all) {
    SCOPED_TRACE(to_string(chosen));
    const DrawnOptions<double> options(sizes, chosen, ++seed);
    Loss loss;
    loss.options = *options;
    expect_central_differences(loss);
  }
}

TEST(AttentionBackward, OfABiasOfAnyShapeAndOfEmptyRows) {
  for (const Shape& shape : {Shape{5}, Shape{4, 1, 1}, Shape{2, 4, 3, 5}}) {
    SCOPED_TRACE(to_string(shape));
    Loss loss;
    const auto bias = normal<double>(shape, 5);
    loss.options.bias = bias;
    expect_central_differences(loss);
  }
  Loss loss;
  loss.options.mask = Mask::rows({{0, 5}, {2, 2}, {1, 3}});
  expect_central_differences(loss);
}

TEST(AttentionBackward, MaskedNaNChangesNoBit) {
  Loss loss;
  loss.options.mask = Mask::rows({{0, 2}, {0, 0}, {1, 4}});
  const auto clean =
      reference::attention_backward(loss.grad_out, loss.query, loss.key, loss.value, loss.options);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for_each_element(loss.key.view().select(2, 4), [=](double& element) { element = nan; });
  for_each_element(loss.value.view().select(2, 4), [=](double& element) { element = nan; });
  const auto poisoned =
      reference::attention_backward(loss.grad_out, loss.query, loss.key, loss.value, loss.options);
  EXPECT_TRUE(same_bits(clean.query, poisoned.query));
  EXPECT_TRUE(same_bits(clean.key, poisoned.key));
  EXPECT_TRUE(same_bits(clean.value, poisoned.value));
  EXPECT_THAT(elements_of(to_tensor(clean.query.view().select(2, 1))), Each(0.0));
}

TEST(AttentionBackward, RefusesAGradOutOfAnotherShape) {
  const Loss loss;
  EXPECT_THAT(
      ([&] { reference::attention_backward(loss.query, loss.query, loss.key, loss.value); }),
      Refuses("grad_out", "[2, 4, 3, 3]"));
}

TEST(AttentionBackward, EmptySizes) {
  const Tensor<float> query(Shape{1, 1, 0, 2});
  const Tensor<float> key(Shape{1, 1, 3, 2});
  const auto gradients = reference::attention_backward(query, query, key, key);
  EXPECT_EQ(gradients.query.shape(), (Shape{1, 1, 0, 2}));
  EXPECT_THAT(gradients.key.elements(), Each(0.0F));
}

TEST(SoftmaxBackward, IsTheJacobian) {
  const Tensor<double> weights({3}, {0.2, 0.3, 0.5});
  const Tensor<double> grad({3}, {1, 0, 0});
  const auto result = reference::softmax_backward(grad, weights);
  EXPECT_DOUBLE_EQ(result(0), 0.2 * 0.8);
  EXPECT_DOUBLE_EQ(result(1), -0.3 * 0.2);
  EXPECT_DOUBLE_EQ(result(2), -0.5 * 0.2);
}

}  // namespace
}  // namespace heed
