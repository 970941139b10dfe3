#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "heed/attention/position.h"
#include "heed/attention/reference.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::Each;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::elements_of;
using testing_support::normal;
using testing_support::same_bits;

// A loss Σ grad_out ∘ attention(…), its gradients, and all of its inputs.
struct Loss {
  Tensor<double> query = normal<double>({2, 4, 3, 3}, 1);
  Tensor<double> key = normal<double>({2, 2, 5, 3}, 2);
  Tensor<double> value = normal<double>({2, 2, 5, 4}, 3);
  Tensor<double> grad_out = normal<double>({2, 4, 3, 4}, 4);
  Tensor<double> alibi_slopes;
  Tensor<double> bias;
  Tensor<double> sinks;
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

struct GradcheckCase {
  std::string name;
  std::function<void(Loss&)> set_up;
};

class Gradcheck : public testing::TestWithParam<GradcheckCase> {};

TEST_P(Gradcheck, AgreesWithCentralDifferences) {
  Loss loss;
  GetParam().set_up(loss);
  if (!loss.alibi_slopes.empty()) loss.options.alibi_slopes = loss.alibi_slopes;
  if (!loss.bias.empty()) loss.options.bias = loss.bias;
  if (!loss.sinks.empty()) loss.options.sinks = loss.sinks;
  const auto gradients =
      reference::attention_backward(loss.grad_out, loss.query, loss.key, loss.value, loss.options);
  expect_central_differences(loss, loss.query, gradients.query, "query");
  expect_central_differences(loss, loss.key, gradients.key, "key");
  expect_central_differences(loss, loss.value, gradients.value, "value");
  if (!loss.alibi_slopes.empty()) {
    expect_central_differences(loss, loss.alibi_slopes, gradients.alibi_slopes, "alibi_slopes");
  }
  if (!loss.bias.empty()) expect_central_differences(loss, loss.bias, gradients.bias, "bias");
  if (!loss.sinks.empty()) expect_central_differences(loss, loss.sinks, gradients.sinks, "sinks");
}

void bias(Loss& loss) { loss.bias = normal<double>({2, 4, 3, 5}, 5); }
void sinks(Loss& loss) { loss.sinks = normal<double>({4}, 6); }
void alibi(Loss& loss) { loss.alibi_slopes = heed::alibi_slopes<double>(4); }
void softcap(Loss& loss) { loss.options.softcap = 0.8; }
void dropout(Loss& loss) { loss.options.dropout = {.probability = 0.3F, .seed = 5}; }
void window(Loss& loss) {
  loss.options.mask = causal_bottom_right() & sliding_window(1, 0, Alignment::bottom_right());
}
void score_mod(Loss& loss) {
  loss.options.score_mod = [](auto score, int, int h, int q_idx, int kv_idx) {
    return heed::tanh(score) * (1 + h) - 0.3 * heed::max(score, 0.1) * (q_idx - kv_idx);
  };
}

std::vector<GradcheckCase> cases() {
  const std::vector<GradcheckCase> alone = {
      {"Plain", [](Loss&) {}},
      {"Scale", [](Loss& loss) { loss.options.scale = 1.7; }},
      {"Bias", bias},
      {"BiasOfOneRow", [](Loss& loss) { loss.bias = normal<double>({5}, 5); }},
      {"BiasPerHead",
       [](Loss& loss) {
         loss.bias = normal<double>({4, 1, 1}, 5);
       }},
      {"Sinks", sinks},
      {"Softcap", softcap},
      {"ScoreMod", score_mod},
      {"Dropout", dropout},
      {"Window", window},
      {"Alibi", alibi},
      {"EmptyRow",
       [](Loss& loss) {
         loss.options.mask = Mask::rows({{0, 5}, {2, 2}, {1, 3}});
       }},
  };
  std::vector<GradcheckCase> all = alone;
  const std::vector<GradcheckCase> pairable = {alone[2], alone[5], alone[6], alone[7],
                                               alone[8], alone[9], alone[10]};
  for (std::size_t i = 0; i < pairable.size(); ++i) {
    for (std::size_t j = i + 1; j < pairable.size(); ++j) {
      all.push_back({pairable[i].name + "And" + pairable[j].name,
                     [first = pairable[i].set_up, second = pairable[j].set_up](Loss& loss) {
                       first(loss);
                       second(loss);
                     }});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(AttentionBackward, Gradcheck, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

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
      ThrowsMessage<InvalidArgument>(
          HasSubstr("attention_backward: grad_out has shape [2, 4, 3, 3], expected [2, 4, 3, 4]")));
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
