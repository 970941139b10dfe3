#include "heed/nn/lstm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "heed/core/parallel.h"
#include "heed/core/random.h"
#include "support/gradcheck.h"
#include "support/refusal.h"

namespace heed::nn { namespace {

using testing::ElementsAre;
using testing::ThrowsMessage;
using testing_support::gradient_error;
using testing_support::kGradientTolerance;
using testing_support::Message;
using testing_support::normal_variable;

using Lengths = std::vector<std::int64_t>;

// Returns all results of an LSTM as one variable.
template <class T>
Variable<T> all_of(const LstmOutput<T>& output) {
  const auto flat = [](const Variable<T>& x) { return reshape(x, {x.num_elements()}); };
  return concat<T>({flat(output.out), flat(output.state.hidden), flat(output.state.cell)});
}

LstmParameters<double> parameters(std::int64_t input, std::int64_t hidden, bool bias = true) {
  LstmParameters<double> result{normal_variable({4 * hidden, input}, 1),
                                normal_variable({4 * hidden, hidden}, 2)};
  if (bias) {
    result.bias_ih = normal_variable({4 * hidden}, 3);
    result.bias_hh = normal_variable({4 * hidden}, 4);
  }
  return result;
}

TEST(Lstm, HasTheGradientsOfEveryInput) {
  const LstmParameters<double> weights = parameters(3, 2);
  const LstmState<double> start{normal_variable({3, 2}, 5), normal_variable({3, 2}, 6)};
  const Variable<double> x = normal_variable({3, 4, 3}, 7);
  for (const bool is_reverse : {false, true}) {
    for (const Lengths& lengths : {Lengths{}, Lengths{2, 4, 0}, Lengths{1, 3, 4}}) {
      EXPECT_LE(gradient_error({x, weights.weight_ih, weights.weight_hh, weights.bias_ih,
                                weights.bias_hh, start.hidden, start.cell},
                               [&] {
                                 return all_of(lstm(x, weights, start, {is_reverse, lengths}));
                               }),
                kGradientTolerance);
    }
  }
}

TEST(Lstm, HasGradientsOfAwkwardShapes) {
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{0, 3, 1}, Shape{2, 0, 1}, Shape{35, 2, 1}}) {
    const LstmParameters<double> weights = parameters(1, 1, false);
    const Variable<double> x = normal_variable(shape, 7);
    EXPECT_LE(gradient_error({x, weights.weight_ih, weights.weight_hh},
                             [&] { return all_of(lstm(x, weights)); }),
              kGradientTolerance);
  }
}

TEST(Lstm, LayersInBothDirectionsHaveGradients) {
  LSTM<double> layers(3, 2, {.num_layers = 2, .dropout = 0.4, .bidirectional = true});
  std::vector<Variable<double>> inputs = layers.parameters();
  inputs.push_back(normal_variable({2, 3, 3}, 1));
  EXPECT_LE(gradient_error(inputs,
                           [&] {
                             set_seed(5);  // the same dropout each time
                             return all_of(layers.forward(inputs.back(), {3, 2}));
                           }),
            kGradientTolerance);
}

TEST(Lstm, PaddingChangesNothing) {
  LSTM<> layers(3, 4, {.num_layers = 2, .bidirectional = true});
  const Tensor<float> x = default_generator().randn({2, 5, 3});
  Tensor<float> spoilt = to_tensor(x.view());
  for (std::int64_t t = 2; t < 5; ++t) spoilt(1, t, 0) = 1e6F;
  const auto padded = layers.forward(spoilt, {5, 2});
  const auto alone = layers.forward(to_tensor(x.view().slice(0, 1, 2).slice(1, 0, 2)));
  for (std::int64_t t = 0; t < 5; ++t) {
    for (std::int64_t j = 0; j < 8; ++j) {
      // BLAS may add in another order where a product has another number of rows.
      if (t < 2) {
        EXPECT_NEAR(padded.out.value()(1, t, j), alone.out.value()(0, t, j), 1e-6);
      } else {
        EXPECT_EQ(padded.out.value()(1, t, j), 0);
      }
    }
  }
  for (std::int64_t j = 0; j < 4; ++j) {
    EXPECT_NEAR(padded.state.hidden.value()(3, 1, j), alone.state.hidden.value()(3, 0, j), 1e-6);
    EXPECT_NEAR(padded.state.cell.value()(0, 1, j), alone.state.cell.value()(0, 0, j), 1e-6);
  }
}

TEST(Lstm, ContinuesFromItsState) {
  LSTM<> layers(3, 4, {.num_layers = 2});
  const Tensor<float> x = default_generator().randn({2, 5, 3});
  const auto whole = layers.forward(to_tensor(x.view()));
  const auto first = layers.forward(to_tensor(x.view().slice(1, 0, 3)));
  const auto rest = layers.forward(to_tensor(x.view().slice(1, 3, 5)), {}, first.state);
  EXPECT_TRUE(
      std::ranges::equal(whole.state.cell.value().elements(), rest.state.cell.value().elements()));
  EXPECT_EQ(whole.out.value()(1, 4, 2), rest.out.value()(1, 1, 2));
}

TEST(Lstm, GivesTheSameBitsForAnyNumberOfThreads) {
  LSTM<> layers(5, 3);
  const Tensor<float> x = default_generator().randn({67, 3, 5});
  const auto gradients = [&](int threads) {
    const ThreadLimit limit(threads);
    layers.zero_grad();
    sum(layers.forward(to_tensor(x.view())).out).backward();
    std::vector<float> result;
    for (const auto& parameter : layers.parameters()) {
      const auto grad = parameter.grad().elements();
      result.insert(result.end(), grad.begin(), grad.end());
    }
    return result;
  };
  EXPECT_EQ(gradients(1), gradients(4));
}

TEST(Lstm, DropsBetweenLayersInTrainingOnly) {
  const Tensor<float> x = default_generator().randn({1, 6, 3});
  LSTM<> layers(3, 8, {.num_layers = 2, .dropout = 0.5});
  const auto first = [&] {
    const Variable<float> out = layers.forward(to_tensor(x.view())).out;
    const auto elements = out.value().elements();
    return std::vector<float>(elements.begin(), elements.end());
  };
  EXPECT_NE(first(), first());
  layers.eval();
  EXPECT_EQ(first(), first());
}

TEST(Lstm, NamesItsParametersAndItselfAsPyTorch) {
  const LSTM<> layers(3, 2, {.num_layers = 2, .dropout = 0.1, .bidirectional = true});
  std::vector<std::string> names;
  for (const auto& [name, value] : layers.named_parameters()) names.push_back(name);
  EXPECT_EQ(names.size(), 16);
  names.resize(8);
  EXPECT_THAT(names, ElementsAre("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0",
                                 "weight_ih_l0_reverse", "weight_hh_l0_reverse",
                                 "bias_ih_l0_reverse", "bias_hh_l0_reverse"));
  EXPECT_EQ(layers.summary(),
            "LSTM(3, 2, num_layers=2, batch_first=True, dropout=0.1, bidirectional=True)");
}

TEST(Lstm, RefusesWhatDoesNotFit) {
  const auto refuses = [](const auto& call, const Message& text) {
    EXPECT_THAT(call, ThrowsMessage<InvalidArgument>(text));
  };
  refuses([] { LSTM<>(3, 0); }, {"hidden_size", "0"});
  refuses([] { LSTM<>(3, 1, {.dropout = 1.5}); }, {"dropout", "1.5"});
  LSTM<> layer(3, 2);
  const Variable<float> x(Tensor<float>({2, 5, 3}));
  refuses([&] { layer.forward(Tensor<float>({2, 5, 4})); }, {"x", "[2, 5, 4]"});
  refuses([&] { layer.forward(x, {5}); }, "lstm: 1 lengths are given for a batch of 2");
  refuses([&] { layer.forward(x, {5, 6}); }, {"length", "6"});
  refuses([&] { layer.forward(x, {-1, 5}); }, {"length", "-1"});
  const Variable<float> state(Tensor<float>({1, 2, 3}));
  refuses([&] { layer.forward(x, {}, {state, state}); }, {"an initial state", "[1, 2, 3]"});
  refuses([&] { layer.forward(x, {}, {state}); }, "expected both or none");
}

TEST(Lstm, FunctionRefusesWhatDoesNotFit) {
  const auto refuses = [](const LstmParameters<double>& given, const Message& text) {
    const Variable<double> x = normal_variable({2, 4, 3}, 7);
    EXPECT_THAT([&] { lstm(x, given); }, ThrowsMessage<InvalidArgument>(text));
  };
  LstmParameters<double> weights = parameters(3, 2);
  weights.bias_hh = {};
  refuses(weights, "lstm: one bias is given, expected both or none");
  refuses({normal_variable({8, 4}, 1), normal_variable({8, 2}, 2)}, {"weight_ih", "[8, 4]"});
  refuses({normal_variable({8, 3}, 1), normal_variable({8, 3}, 2)}, {"weight_hh", "[8, 3]"});
}

}  // namespace
}  // namespace heed::nn
