#include "heed/nn/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "heed/core/parallel.h"
#include "heed/core/random.h"
#include "heed/nn/ops.h"
#include "support/refusal.h"

namespace heed::nn { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::Refuses;

Variable<double> parameter_with_grad(double value, double grad) {
  Variable<double> parameter(Tensor<double>({1}, {value}), true);
  sum(parameter * grad).backward();
  return parameter;
}

TEST(Optimizer, SgdGathersMomentum) {
  const auto p = parameter_with_grad(1, 2);
  Sgd<double> sgd({p}, 0.1, {.momentum = 0.5, .weight_decay = 0.1});
  sgd.step();
  const double velocity = 2 + 0.1;
  EXPECT_DOUBLE_EQ(p.value()(0), 1 - 0.1 * velocity);
  const double before = p.value()(0);
  sgd.step();
  EXPECT_DOUBLE_EQ(p.value()(0), before - 0.1 * (0.5 * velocity + 2 + 0.1 * before));
}

TEST(Optimizer, AdamsFirstStepIsTheLearningRate) {
  for (const double grad : {1e-3, -50.0}) {
    const auto p = parameter_with_grad(1, grad);
    Adam<double>({p}, 0.1).step();
    EXPECT_NEAR(p.value()(0), 1 - std::copysign(0.1, grad), 1e-6);
  }
}

TEST(Optimizer, AdamWShrinksTheParameterItself) {
  const auto decayed = parameter_with_grad(1, 2);
  const auto plain = parameter_with_grad(1, 2);
  AdamW<double>({decayed}, 0.1, {.weight_decay = 0.5}).step();
  Adam<double>({plain}, 0.1).step();
  EXPECT_DOUBLE_EQ(decayed.value()(0), plain.value()(0) - 0.1 * 0.5);
}

TEST(Optimizer, LeavesParametersWithoutGradient) {
  const Variable<double> p(Tensor<double>({1}, {3}), true);
  Adam<double> adam({p});
  adam.step();
  EXPECT_EQ(p.value()(0), 3);
}

TEST(Optimizer, ContinuesFromItsState) {
  const auto p = parameter_with_grad(1, 2);
  Adam<double> adam({p}, 0.1);
  adam.step();
  const Variable<double> copy = parameter_with_grad(p.value()(0), 2);
  Adam<double> continued({copy}, 0.1);
  continued.load_state_dict(adam.state_dict());
  adam.step();
  continued.step();
  EXPECT_EQ(copy.value()(0), p.value()(0));
  Sgd<double> other({p}, 0.1);
  EXPECT_THAT([&] { other.load_state_dict(adam.state_dict()); },
              ThrowsMessage<InvalidArgument>(
                  HasSubstr("0.exp_avg is unexpected; 0.exp_avg_sq is unexpected")));
}

TEST(Optimizer, ClipsTheNormOfAllGradients) {
  const auto a = parameter_with_grad(0, 3);
  const auto b = parameter_with_grad(0, 4);
  EXPECT_DOUBLE_EQ(clip_grad_norm<double>({a, b}, 10), 5);
  EXPECT_EQ(a.grad()(0), 3);
  EXPECT_DOUBLE_EQ(clip_grad_norm<double>({a, b}, 1), 5);
  EXPECT_NEAR(std::hypot(a.grad()(0), b.grad()(0)), 1, 1e-6);
}

TEST(Optimizer, GivesTheSameBitsForAnyNumberOfThreads) {
  const auto steps = [](int threads) {
    const ThreadLimit limit(threads);
    TorchGenerator random(1);
    const Variable<float> parameter(random.randn({50'000}), true);
    AdamW<> adam({parameter}, 0.1);
    std::vector<double> norms;
    for (int step = 0; step < 2; ++step) {
      adam.zero_grad();
      sum(parameter * parameter).backward();
      norms.push_back(clip_grad_norm<float>({parameter}, 1));
      adam.step();
    }
    const auto elements = parameter.value().elements();
    return std::pair(norms, std::vector<float>(elements.begin(), elements.end()));
  };
  EXPECT_EQ(steps(1), steps(4));
}

TEST(Optimizer, WarmsUpAndCools) {
  const WarmupCosine schedule{.peak = 2, .warmup_steps = 4, .total_steps = 14, .floor = 0.5};
  EXPECT_DOUBLE_EQ(schedule(0), 0.5);
  EXPECT_DOUBLE_EQ(schedule(3), 2);
  EXPECT_DOUBLE_EQ(schedule(4), 2);
  EXPECT_DOUBLE_EQ(schedule(9), 1.25);
  EXPECT_DOUBLE_EQ(schedule(14), 0.5);
  EXPECT_DOUBLE_EQ(schedule(100), 0.5);
}

TEST(Optimizer, RefusesMisuse) {
  EXPECT_THAT([] { Adam<double>({}, -1); }, Refuses("learning_rate", "-1"));
  EXPECT_THAT([] { clip_grad_norm<double>({}, -1); }, Refuses("max_norm", "-1"));
}

}  // namespace
}  // namespace heed::nn
