// The values and errors of ops.h. tests/python/test_layers.py compares values with PyTorch.
#include "heed/nn/ops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "heed/core/parallel.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed::nn { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::max_difference;
using testing_support::normal;
using testing_support::Refuses;
using testing_support::same_bits;

template <class T>
std::vector<T> elements(const Variable<T>& x) {
  return {x.value().elements().begin(), x.value().elements().end()};
}

const Variable<float> kColumn(Tensor<float>({2, 1}, {1, 2}));
const Variable<float> kRow(Tensor<float>({3}, {10, 20, 30}));

TEST(Ops, ArithmeticBroadcasts) {
  EXPECT_THAT(elements(kColumn + kRow), ElementsAre(11, 21, 31, 12, 22, 32));
  EXPECT_THAT(elements(kColumn - kRow), ElementsAre(-9, -19, -29, -8, -18, -28));
  EXPECT_THAT(elements(kColumn * kRow), ElementsAre(10, 20, 30, 20, 40, 60));
  EXPECT_THAT(elements(kRow * 0.5), ElementsAre(5, 10, 15));
  EXPECT_EQ((kColumn + Variable<float>(Tensor<float>({0, 1, 1}))).shape(), (Shape{0, 2, 1}));
  EXPECT_THAT([] { static_cast<void>(kRow + Variable<float>(Tensor<float>({2}))); },
              ThrowsMessage<InvalidArgument>(HasSubstr("add: the shapes [3] and [2]")));
}

TEST(Ops, Rearrangement) {
  const Variable<float> x(Tensor<float>({2, 3}, {0, 1, 2, 3, 4, 5}));
  EXPECT_THAT(elements(transpose(x)), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(elements(slice(x, 1, 1, 3)), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(elements(select(x, -1, 2)), ElementsAre(2, 5));
  EXPECT_THAT(elements(stack<float>({kRow, kRow}, 1)), ElementsAre(10, 10, 20, 20, 30, 30));
  EXPECT_THAT(elements(concat<float>({x, kColumn}, 1)), ElementsAre(0, 1, 2, 1, 3, 4, 5, 2));
  const auto parts = split(x, 2);
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_THAT(elements(parts[1]), ElementsAre(2, 5));
  const auto reshaped = reshape(x, {3, 2});
  EXPECT_EQ(reshaped.value().data(), x.value().data()) << "a reshape copies nothing";
}

TEST(Ops, RearrangementRefusesMisuse) {
  const Variable<float> x(Tensor<float>({2, 3}));
  EXPECT_THAT(
      [&] {
        permute(x, {0, 0});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("the order [0, 0] is no permutation")));
  EXPECT_THAT([&] { permute(x, {0, 1, 2}); }, Refuses("dim", "2"));
  EXPECT_THAT([&] { split(x, 0); }, Refuses("size", "0"));
  EXPECT_THAT([&] { concat<float>({}); }, ThrowsMessage<InvalidArgument>(HasSubstr("empty")));
  EXPECT_THAT(
      [&] {
        concat<float>({x, kColumn}, 0);
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("shape [2, 1] but the first [2, 3]")));
  EXPECT_THAT([&] { slice(x, 1, 2, 4); }, testing::Throws<InvalidArgument>());
  EXPECT_THAT([&] { reshape(x, {4}); }, testing::Throws<InvalidArgument>());
  EXPECT_THAT([&] { transpose(kRow); }, ThrowsMessage<InvalidArgument>(HasSubstr("rank 2")));
}

TEST(Ops, MatrixProductsRefuseMisuse) {
  const Variable<float> x(Tensor<float>({2, 3}));
  EXPECT_THAT([&] { matmul(x, x); }, Refuses("b", "[2, 3]"));
  EXPECT_THAT(
      [&] {
        matmul(Variable<float>(Tensor<float>({2, 1, 3})),
               Variable<float>(Tensor<float>({3, 3, 1})));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("[2] and [3] do not broadcast")));
  EXPECT_THAT([&] { layer_norm(x, kRow, kColumn); },
              ThrowsMessage<InvalidArgument>(HasSubstr("weight [3] and bias [2, 1]")));
}

TEST(Ops, CrossEntropyIsTheMeanOverTargetsThatCount) {
  const Variable<double> logits(Tensor<double>({3, 2}, {0, 0, 5, 7, 0, std::log(3.0)}));
  const Tensor<std::int64_t> targets({3}, {0, kIgnoreIndex, 1});
  EXPECT_NEAR(cross_entropy<double>(logits, targets).item(),
              (std::log(2.0) + std::log(4.0 / 3)) / 2, 1e-15);
}

TEST(Ops, CrossEntropyHasTheGradientOfEveryPass) {
  constexpr std::int64_t kClasses = 70;
  const Variable<double> logits(normal<double>({3, kClasses}, 1), true);
  const Tensor<std::int64_t> targets({3}, {69, kIgnoreIndex, 2});
  const Variable<double> loss = cross_entropy<double>(logits, targets);
  loss.backward({.retain_graph = true});
  loss.backward();
  for (std::int64_t row = 0; row < 3; ++row) {
    double sum = 0;
    for (std::int64_t i = 0; i < kClasses; ++i) sum += std::exp(logits.value()(row, i));
    for (std::int64_t i = 0; i < kClasses; ++i) {
      const double weight = std::exp(logits.value()(row, i)) / sum;
      const double expected = (weight - (i == targets(row) ? 1 : 0)) / 2;
      EXPECT_NEAR(logits.grad()(row, i), row == 1 ? 0 : 2 * expected, 1e-15);
    }
  }
}

// Rows, columns and elements that several threads share.
TEST(Ops, GradientsHaveTheSameBitsForAnyNumberOfThreads) {
  const Variable<float> x(normal<float>({300, 90}, 1), true);
  const Variable<float> weight(normal<float>({4100, 90}, 2), true);
  const Variable<float> bias(normal<float>({4100}, 3), true);
  Tensor<std::int64_t> targets(Shape{300});
  for (std::int64_t row = 0; row < 300; ++row) targets(row) = row * 13;
  const auto gradients = [&](int threads) {
    const ThreadLimit limit(threads);
    std::vector<float> result;
    cross_entropy<float>(linear(x, weight, bias), targets).backward();
    for (const auto& leaf : {x, weight, bias}) {
      result.insert(result.end(), leaf.grad().elements().begin(), leaf.grad().elements().end());
      leaf.zero_grad();
    }
    return result;
  };
  EXPECT_EQ(gradients(1), gradients(4));
}

TEST(Ops, SumsManyRows) {
  constexpr std::int64_t kRows = 600;
  constexpr std::int64_t kWidth = 2100;
  const Variable<float> bias(Tensor<float>(Shape{kWidth}), true);
  Tensor<float> grad(Shape{kRows, kWidth});
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t column = 0; column < kWidth; ++column) {
      grad(row, column) = static_cast<float>(row + column);
    }
  }
  add(bias, Variable<float>(Tensor<float>(Shape{kRows, kWidth}))).backward(grad.view());
  for (std::int64_t column = 0; column < kWidth; ++column) {
    const std::int64_t expected = kRows * (kRows - 1) / 2 + kRows * column;
    ASSERT_EQ(bias.grad()(column), static_cast<float>(expected));
  }
}

TEST(Ops, CrossEntropyTakesLogitsOfAnySize) {
  const Variable<float> logits(Tensor<float>({1, 3}, {1000, -1000, 999}), true);
  const Variable<float> loss = cross_entropy<float>(logits, Tensor<std::int64_t>({1}, {2}));
  EXPECT_FLOAT_EQ(loss.item(), 1.3132617F);
  loss.backward();
  EXPECT_NEAR(logits.grad()(0, 2), 0.26894143 - 1, 1e-6);
}

TEST(Ops, CrossEntropyRefusesMisuse) {
  const Variable<float> logits(Tensor<float>({2, 3}));
  const auto with_targets = [&](const Tensor<std::int64_t>& targets) {
    return [&logits, targets] { cross_entropy<float>(logits, targets); };
  };
  EXPECT_THAT(with_targets(Tensor<std::int64_t>({2}, {0, 3})), Refuses("target", "3"));
  EXPECT_THAT(
      with_targets(Tensor<std::int64_t>({3})),
      ThrowsMessage<InvalidArgument>(HasSubstr("targets have shape [3] but logits [2, 3]")));
  EXPECT_THAT(with_targets(Tensor<std::int64_t>({2}, {kIgnoreIndex, kIgnoreIndex})),
              ThrowsMessage<InvalidArgument>(HasSubstr("no target counts")));
}

TEST(Ops, SoftmaxOfRowsThatSeeNothing) {
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  const Variable<float> x(Tensor<float>({2, 2}, {kHidden, kHidden, 1, kHidden}));
  EXPECT_THAT(elements(softmax(x)), ElementsAre(0, 0, 1, 0));
}

TEST(Ops, DropoutIsAFunctionOfItsSeed) {
  const Variable<float> ones(Tensor<float>({40000}, std::vector<float>(40000, 1)), true);
  const heed::Dropout seven{0.5F, 7};
  const Variable<float> y = dropout(ones, seven);
  set_num_threads(1);
  EXPECT_EQ(elements(dropout(ones, seven)), elements(y));
  set_num_threads(0);
  EXPECT_NE(elements(dropout(ones, {0.5F, 8})), elements(y));
  sum(y).backward();
  EXPECT_TRUE(same_bits(to_tensor(ones.grad()), to_tensor(y.value())));
  EXPECT_THAT(elements(dropout(ones, {1, 7})), testing::Each(0));
  EXPECT_THAT([&] { dropout(ones, {-0.1F, 7}); }, Refuses("probability", "-0.1"));
}

// The tape's float results are as close to double as float allows.
TEST(Ops, FloatGradientsAgreeWithDouble) {
  const auto grad_of = [](auto real) {
    using Real = decltype(real);
    const auto cast = [](const Tensor<double>& from) {
      Tensor<Real> to(from.shape());
      std::transform(from.elements().begin(), from.elements().end(), to.data(),
                     [](double x) { return static_cast<Real>(x); });
      return Variable<Real>(std::move(to), true);
    };
    const auto query = cast(normal<double>({2, 2, 17, 8}, 1));
    const auto key = cast(normal<double>({2, 2, 17, 8}, 2));
    const auto out = attention(query, key, tanh(key), {.mask = causal()});
    mean(out * out).backward();
    Tensor<double> grad(key.shape());
    std::copy_n(key.grad().data(), grad.num_elements(), grad.data());
    return grad;
  };
  EXPECT_LE(max_difference(grad_of(float{}), grad_of(double{})), 1e-8);
}

}  // namespace
}  // namespace heed::nn
