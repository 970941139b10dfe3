#include "heed/nn/variable.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "heed/nn/ops.h"
#include "heed/nn/tape.h"
#include "support/gradcheck.h"
#include "support/refusal.h"

namespace heed::nn { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::Refuses;

Variable<double> leaf(std::initializer_list<double> elements) {
  const auto count = static_cast<std::int64_t>(elements.size());
  return Variable<double>(Tensor<double>({count}, elements), true);
}

TEST(Variable, PassesGradientsToLeaves) {
  const Variable x = leaf({1, 2});
  sum(x * x).backward();
  EXPECT_THAT(x.grad().elements(), ElementsAre(2, 4));
}

TEST(Variable, AccumulatesUntilZeroed) {
  const Variable x = leaf({1, 2});
  sum(x * x).backward();
  sum(x * 3).backward();
  EXPECT_THAT(x.grad().elements(), ElementsAre(5, 7));
  x.zero_grad();
  EXPECT_FALSE(x.has_grad());
  sum(x).backward();
  EXPECT_THAT(x.grad().elements(), ElementsAre(1, 1));
}

TEST(Variable, SumsOverEveryPath) {
  const Variable x = leaf({3});
  const Variable y = x * x;
  sum(y * x + y).backward();
  EXPECT_THAT(x.grad().elements(), ElementsAre(3 * 9 + 2 * 3));
}

TEST(Variable, TakesTheGradientOfItsOwnValue) {
  const Variable x = leaf({1, 2});
  (x * x).backward(Tensor<double>({2}, {10, 100}));
  EXPECT_THAT(x.grad().elements(), ElementsAre(20, 400));
}

TEST(Variable, CopiesAreHandles) {
  const Variable x = leaf({1, 2});
  Variable<double> copy;
  copy = x;
  sum(copy).backward();
  EXPECT_TRUE(x.has_grad());
  copy.writable_value()(0) = 7;
  EXPECT_EQ(x.value()(0), 7);
}

TEST(Variable, DetachedValuesPassNothingOn) {
  const Variable x = leaf({3});
  sum(x * (x * x).detach()).backward();
  EXPECT_THAT(x.grad().elements(), ElementsAre(9));
}

TEST(Variable, NoGradRecordsNothing) {
  const Variable x = leaf({3});
  {
    const NoGrad outer;
    const NoGrad inner;
    EXPECT_FALSE((x * x).requires_grad());
  }
  EXPECT_TRUE((x * x).requires_grad());
  EXPECT_TRUE(is_grad_enabled());
}

TEST(Variable, FrozenLeavesGetNone) {
  const Variable x = leaf({3});
  const Variable frozen = leaf({2});
  frozen.set_requires_grad(false);
  sum(x * frozen).backward();
  EXPECT_TRUE(x.has_grad());
  EXPECT_FALSE(frozen.has_grad());
}

TEST(Variable, OnlyLeavesKeepGradients) {
  const Variable x = leaf({3});
  const Variable y = x * x;
  sum(y).backward();
  EXPECT_THAT([&] { static_cast<void>(y.grad()); },
              ThrowsMessage<InvalidArgument>(HasSubstr("only leaves keep theirs")));
}

TEST(Variable, RefusesASecondBackward) {
  const Variable x = leaf({3});
  const Variable y = x * x;
  sum(y).backward();
  EXPECT_THAT([&] { sum(y).backward(); },
              ThrowsMessage<InvalidArgument>(HasSubstr("graph behind mul was released")));
  EXPECT_THAT(x.grad().elements(), ElementsAre(6));
}

TEST(Variable, RetainsTheGraphWhenAsked) {
  const Variable x = leaf({3});
  const Variable y = sum(x * x);
  y.backward({.retain_graph = true});
  y.backward();
  EXPECT_THAT(x.grad().elements(), ElementsAre(12));
}

TEST(Variable, RefusesMisuse) {
  const Variable x = leaf({3, 4});
  EXPECT_THAT([&] { (x * x).backward(); },
              ThrowsMessage<InvalidArgument>(HasSubstr("shape [2]; without a gradient for it")));
  EXPECT_THAT([&] { sum(x).backward({.create_graph = true}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("gradients of gradients")));
  EXPECT_THAT([&] { sum(x.detach()).backward(); },
              ThrowsMessage<InvalidArgument>(HasSubstr("does not depend on anything")));
  EXPECT_THAT([&] { (x * x).backward(Tensor<double>({3})); }, Refuses("grad", "[3]"));
  EXPECT_THAT([&] { static_cast<void>(x.item()); },
              ThrowsMessage<InvalidArgument>(HasSubstr("shape [2], expected one element")));
  EXPECT_THAT([&] { (x * x).set_requires_grad(false); },
              ThrowsMessage<InvalidArgument>(HasSubstr("comes from mul, expected a leaf")));
  EXPECT_THAT([&] { static_cast<void>(x + Variable<double>()); },
              ThrowsMessage<InvalidArgument>(HasSubstr("a value is expected")));
}

TEST(Variable, RefusesValuesOverwrittenInBetween) {
  const Variable x = leaf({3});
  const Variable loss = sum(x * x);
  x.writable_value()(0) = 4;
  EXPECT_THAT([&] { loss.backward(); },
              ThrowsMessage<InvalidArgument>(HasSubstr("shape [1] that it needs was overwritten")));
  EXPECT_FALSE(x.has_grad());
}

// Recursive traversal or destruction of so long a chain would exceed the usual 8 MB of stack.
TEST(Variable, TakesLongGraphs) {
  const Variable x = leaf({0});
  Variable y = x;
  for (int i = 0; i < 100000; ++i) y = y + x;
  sum(y).backward();
  EXPECT_THAT(x.grad().elements(), ElementsAre(100001));
  Variable abandoned = x;
  for (int i = 0; i < 100000; ++i) abandoned = abandoned + x;
}

TEST(Tape, UsersCanAddFunctions) {
  const auto square = [](const Variable<double>& x) {
    Tensor<double> value = to_tensor(x.value());
    for (double& element : value.elements()) element *= element;
    return record<double>("square", std::move(value), {x}, [x = Saved(x)](Step<double>& step) {
      Tensor<double> grad = step.take_grad();
      for (std::int64_t i = 0; i < grad.num_elements(); ++i) {
        grad.data()[i] *= 2 * x.view().data()[i];
      }
      step.give(0, std::move(grad));
    });
  };
  const Variable x = testing_support::normal_variable({7}, 1);
  EXPECT_LE(testing_support::gradient_error({x}, [&] { return square(x); }),
            testing_support::kGradientTolerance);
}

}  // namespace
}  // namespace heed::nn
