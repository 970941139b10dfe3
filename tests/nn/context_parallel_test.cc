// Layers whose tokens are divided over ranks: results equal to one process, and errors for what
// cannot be divided.
#include "heed/nn/context_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/distributed/thread_ranks.h"
#include "heed/nn/alignment_layers.h"
#include "heed/nn/attention_layers.h"
#include "heed/nn/attention_weights.h"
#include "heed/nn/embedding_layers.h"
#include "heed/nn/lstm.h"
#include "heed/nn/ops.h"
#include "heed/nn/optimizer.h"
#include "heed/nn/tape.h"
#include "heed/nn/trainer.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed::nn { namespace {

using testing::HasSubstr;
using testing::StrEq;
using testing::ThrowsMessage;
using testing_support::max_difference;
using testing_support::normal;
using testing_support::Refuses;

constexpr std::int64_t kDividedLength = 2100;  // segments of 1024, 1024 and 52 tokens
constexpr std::int64_t kShortLength = 1030;    // segments of 1024 and 6: a third rank has none
constexpr std::int64_t kDividedWidth = 12;

TEST(ContextParallel, KnowsTheTokensOfARank) {
  EXPECT_EQ(ContextParallel::current(), nullptr);
  run_thread_ranks(2, [](Communicator& ranks) {
    const bool is_first = ranks.rank() == 0;
    const ContextParallel divided(ranks, kDividedLength);
    EXPECT_EQ(ContextParallel::current(), &divided);
    const auto places = divided.places();
    ASSERT_EQ(places.extent(0), is_first ? 1024 : 1076);
    EXPECT_EQ(places(0), is_first ? 0 : 1024);
    EXPECT_EQ(places(places.extent(0) - 1), is_first ? 1023 : 2099);
    Tensor<std::int64_t> ids({2, kDividedLength});
    for (std::int64_t i = 0; i < 2 * kDividedLength; ++i) ids.data()[i] = 7 * i;
    const Tensor<std::int64_t> own = divided.own(ids);
    ASSERT_EQ(own.shape(), (Shape{2, places.extent(0)}));
    for (std::int64_t i = 0; i < places.extent(0); ++i) {
      EXPECT_EQ(own(1, i), 7 * (kDividedLength + places(i)));
    }
    {
      const ContextParallel inner(ranks, 5);
      EXPECT_EQ(inner.places().extent(0), is_first ? 5 : 0);
      EXPECT_EQ(ContextParallel::current(), &inner);
    }
    EXPECT_EQ(ContextParallel::current(), &divided);
    EXPECT_THAT([&] { divided.own(Tensor<std::int64_t>({1, 3})); }, Refuses("whole", "[1, 3]"));
    EXPECT_THAT([&] { ContextParallel(ranks, -1); }, Refuses("length", "-1"));
  });
}

// A model of vectors [batch, length, kDividedWidth] with parameters drawn from a seed.
using ForwardPass = std::function<Variable<double>(const Variable<double>& x)>;
struct MadeModel {
  std::shared_ptr<Module<double>> module;
  ForwardPass forward;
};
using MakeModel = std::function<MadeModel()>;

// The output of all tokens, and the gradients of Σ weights ∘ out by x and by each parameter.
struct OutAndGrads {
  Tensor<double> out;
  std::vector<Tensor<double>> grads;
};

Tensor<double> rows_at(const Tensor<double>& whole, TensorView<const std::int64_t> places) {
  Tensor<double> own({whole.extent(0), places.extent(0), whole.extent(2)});
  for (std::int64_t b = 0; b < own.extent(0); ++b) {
    for (std::int64_t i = 0; i < own.extent(1); ++i) {
      for (std::int64_t d = 0; d < own.extent(2); ++d) own(b, i, d) = whole(b, places(i), d);
    }
  }
  return own;
}

void add_rows(const TensorView<const double>& own, TensorView<const std::int64_t> places,
              Tensor<double>& whole) {
  for (std::int64_t b = 0; b < own.extent(0); ++b) {
    for (std::int64_t i = 0; i < own.extent(1); ++i) {
      for (std::int64_t d = 0; d < own.extent(2); ++d) whole(b, places(i), d) += own(b, i, d);
    }
  }
}

void add_all(const TensorView<const double>& part, Tensor<double>& sum) {
  const Tensor<double> numbers = to_tensor(part);
  std::transform(numbers.data(), numbers.data() + numbers.num_elements(), sum.data(), sum.data(),
                 std::plus<>());
}

Tensor<double> divided_input(std::int64_t length) {
  return normal<double>({2, length, kDividedWidth}, 3);
}
Tensor<double> divided_weights(std::int64_t length) {
  return normal<double>({2, length, kDividedWidth}, 4);
}

OutAndGrads zero_sums(std::int64_t length, const Module<double>& module) {
  OutAndGrads sums{Tensor<double>({2, length, kDividedWidth}), {}};
  sums.grads.emplace_back(Shape{2, length, kDividedWidth});
  for (const auto& parameter : module.parameters()) sums.grads.emplace_back(parameter.shape());
  return sums;
}

void add_grads(const Module<double>& module, OutAndGrads& sums) {
  std::size_t i = 1;
  for (const auto& parameter : module.parameters()) {
    if (parameter.has_grad()) add_all(parameter.grad(), sums.grads[i]);
    ++i;
  }
}

OutAndGrads compute_alone(const MakeModel& make, std::int64_t length) {
  const MadeModel model = make();
  OutAndGrads result = zero_sums(length, *model.module);
  const Variable<double> x(divided_input(length), true);
  const Variable<double> out = model.forward(x);
  result.out = to_tensor(out.value());
  sum(out * Variable<double>(divided_weights(length))).backward();
  result.grads[0] = to_tensor(x.grad());
  add_grads(*model.module, result);
  return result;
}

// Returns the sums of the ranks' results.
OutAndGrads compute_divided(const MakeModel& make, std::int64_t length, int size) {
  OutAndGrads sums = zero_sums(length, *make().module);
  std::mutex mutex;
  run_thread_ranks(size, [&](Communicator& ranks) {
    const MadeModel model = make();
    Variable<double> x, out, loss;
    Tensor<std::int64_t> places;
    {
      const ContextParallel divided(ranks, length);
      places = to_tensor(divided.places());
      x = Variable<double>(rows_at(divided_input(length), places), true);
      out = model.forward(x);
      loss = sum(out * Variable<double>(rows_at(divided_weights(length), places)));
    }
    loss.backward();
    const std::lock_guard lock(mutex);
    add_rows(out.value(), places, sums.out);
    add_rows(x.grad(), places, sums.grads[0]);
    add_grads(*model.module, sums);
  });
  return sums;
}

void expect_what_one_computes(const MakeModel& make, std::int64_t length, int size) {
  const OutAndGrads expected = compute_alone(make, length);
  const OutAndGrads found = compute_divided(make, length, size);
  EXPECT_LT(max_difference(found.out, expected.out), 1e-12);
  ASSERT_EQ(found.grads.size(), expected.grads.size());
  double largest = 0;
  for (const Tensor<double>& grads : expected.grads) {
    for (const double grad : grads.elements()) largest = std::max(largest, std::abs(grad));
  }
  EXPECT_GT(largest, 1);
  for (std::size_t i = 0; i < found.grads.size(); ++i) {
    EXPECT_LT(max_difference(found.grads[i], expected.grads[i]), 1e-12 * largest) << i;
  }
}

MakeModel attention_of(AttentionConfig config) {
  config.class_name = "Attention";
  return [config]() -> MadeModel {
    set_seed(11);
    auto layer = std::make_shared<MultiHeadAttention<double>>(config);
    return {layer, [layer](const Variable<double>& x) { return layer->forward(x).out; }};
  };
}

AttentionConfig causal_layer() {
  AttentionConfig config = separate_projections(kDividedWidth, 2);
  config.mask = causal();
  return config;
}

TEST(ContextParallel, AttentionWithRotaryPositionsIsThatOfOneProcess) {
  AttentionConfig config = fused_projection(kDividedWidth, 2, 0);
  config.mask = causal();
  config.rotary = {.max_len = kDividedLength, .pairing = RotaryPairing::kHalves};
  for (const int size : {1, 2, 3})
    expect_what_one_computes(attention_of(config), kDividedLength, size);
  expect_what_one_computes(attention_of(config), kShortLength, 3);
}

TEST(ContextParallel, LearnedTermsGetTheGradientsOfOneProcess) {
  AttentionConfig config = causal_layer();
  config.relative_bias = RelativeBuckets::t5(32, 128, false);
  expect_what_one_computes(attention_of(config), kShortLength, 3);
  config.relative_bias.reset();
  config.relative_vectors = RelativeBuckets::clip(8);
  config.alibi = true;
  expect_what_one_computes(attention_of(config), kDividedLength, 2);
}

TEST(ContextParallel, DropoutOfWeightsHidesWhatItHidesInOneProcess) {
  AttentionConfig config = separate_projections(kDividedWidth, 2, 0.4);
  config.mask = sliding_window(700, 0);
  expect_what_one_computes(attention_of(config), kDividedLength, 2);
}

TEST(ContextParallel, PositionLayersKnowTheWholeSequence) {
  const MakeModel sinusoidal = [] {
    set_seed(12);
    struct Layers : Module<double> {
      Layers()
          : positions(make_module<SinusoidalPositionalEncoding<double>>("positions", kDividedWidth,
                                                                        kDividedLength)),
            attention(make_module<CausalMultiHeadAttention<double>>("attention", kDividedWidth, 2,
                                                                    kDividedLength, 0.0)) {}
      std::string class_name() const override { return "Layers"; }
      SinusoidalPositionalEncoding<double>& positions;
      CausalMultiHeadAttention<double>& attention;
    };
    const auto layers = std::make_shared<Layers>();
    return MadeModel{layers, [layers](const Variable<double>& x) {
                       return layers->attention.forward(layers->positions.forward(x)).out;
                     }};
  };
  expect_what_one_computes(sinusoidal, kDividedLength, 2);
  const MakeModel learned = [] {
    set_seed(13);
    const auto layer =
        std::make_shared<LearnedPositionalEncoding<double>>(kDividedWidth, kDividedLength + 3, 0.0);
    return MadeModel{layer, [layer](const Variable<double>& x) {
                       const Variable<double> y = layer->forward(x);
                       return y * y;
                     }};
  };
  expect_what_one_computes(learned, kShortLength, 3);
}

// Two layers of attention, with a function between them that is called in the backward pass.
class TwoAttentions : public Module<float> {
 public:
  TwoAttentions()
      : first_(make_module<MultiHeadAttention<float>>("first", causal_layer())),
        second_(make_module<MultiHeadAttention<float>>("second", causal_layer())) {}

  Variable<float> loss(const Variable<float>& x, const std::function<void()>& between) {
    const Variable<float> y = first_.forward(x).out;
    const auto told = record<float>("between", y.shared_value(), {y}, [between](Step<float>& step) {
      between();
      step.give(0, step.take_grad());
    });
    const Variable<float> out = second_.forward(told).out;
    return mean(out * out);
  }
  std::string class_name() const override { return "TwoAttentions"; }

 private:
  MultiHeadAttention<float>& first_;
  MultiHeadAttention<float>& second_;
};

TEST(ContextParallel, ARankThatFailsBetweenTwoLayersIsHeardOfInTheNext) {
  run_thread_ranks(3, [](Communicator& ranks) {
    set_seed(14);
    TwoAttentions model;
    Sgd<float> optimizer(model.parameters(), 0.1);
    Trainer<float> trainer(model, optimizer,
                           {.schedule = {.peak = 0.1, .warmup_steps = 0, .total_steps = 2},
                            .ranks = &ranks,
                            .is_context_parallel = true});
    int num_between = 0;
    const auto loss = [&](const std::function<void()>& between) {
      return BatchLoss<float>(
          [&] {
            const ContextParallel divided(ranks, 3 * 1024);
            return model.loss(Variable<float>(normal<float>({1, 1024, kDividedWidth}, 5)),
                              [&, between] {
                                ++num_between;
                                between();
                              });
          }(),
          1024);
    };
    const auto fail = [&] {
      if (ranks.rank() == 2) throw InvalidArgument("cannot go back");
    };
    EXPECT_THAT([&] { trainer.run([&] { return loss(fail); }); },
                ThrowsMessage<InvalidArgument>(StrEq("rank 2: cannot go back")));
    EXPECT_EQ(num_between, 1);
    EXPECT_EQ(trainer.step(), 0);
    EXPECT_TRUE(trainer.run([&] { return loss([] {}); }));
    EXPECT_EQ(num_between, 3);
  });
}

TEST(ContextParallel, LayersSayWhatDoesNotFit) {
  run_thread_ranks(2, [](Communicator& ranks) {
    const ContextParallel divided(ranks, kDividedLength);
    const std::int64_t own = divided.places().extent(0);
    const auto x = [&](std::int64_t length) {
      return Variable<double>(Tensor<double>({1, length, kDividedWidth}));
    };
    SinusoidalPositionalEncoding<double> positions(kDividedWidth, kDividedLength);
    EXPECT_THAT(
        [&] { positions.forward(x(100)); },
        ThrowsMessage<InvalidArgument>(StrEq(
            "SinusoidalPositionalEncoding: x has 100 tokens, expected the " + std::to_string(own) +
            " of 2100 that rank " + std::to_string(ranks.rank()) + " of 2 has (ContextParallel)")));
    SinusoidalPositionalEncoding<double> few(kDividedWidth, kDividedLength - 1);
    EXPECT_THAT([&] { few.forward(x(own)); }, Refuses("x", "2100"));
    CausalMultiHeadAttention<double> causal(kDividedWidth, 2, kDividedLength - 1, 0);
    EXPECT_THAT([&] { causal.forward(x(own)); }, Refuses("x", "2100"));
    MultiHeadAttention<double> attention(causal_layer());
    EXPECT_THAT([&] { attention.forward(x(own + 1)); },
                ThrowsMessage<InvalidArgument>(HasSubstr("expected 1024")));
  });
}

TEST(ContextParallel, WhatLooksAtTokensInAnotherWayIsRefused) {
  run_thread_ranks(1, [](Communicator& ranks) {
    const ContextParallel divided(ranks, 4);
    const Variable<float> x(Tensor<float>({1, 4, kDividedWidth}));
    const auto expect_refusal = [](const std::string& who, const std::function<void()>& call) {
      EXPECT_THAT(call, ThrowsMessage<InvalidArgument>(StrEq(
                            who + ": the tokens of a sequence are divided over ranks "
                                  "(ContextParallel), expected all of them: only attention by a "
                                  "softmax divides them")));
    };
    MultiHeadAttention<float> layer(causal_layer());
    expect_refusal("MultiHeadAttention with weights to look at",
                   [&] { layer.forward(x, {.return_attention = true}); });
    expect_refusal("MultiHeadAttention with weights to look at", [&] {
      layer.forward(x, {.rows = {{0, 0, 1}}});
    });
    KvSequence past = layer.make_past();
    expect_refusal("MultiHeadAttention::continued", [&] { layer.continued(past, x); });
    layer.observe([](const auto&) {});
    expect_refusal("MultiHeadAttention with an observer", [&] { layer.forward(x); });
    layer.observe({});
    AttentionConfig config = separate_projections(kDividedWidth, 2);
    config.feature_map = FeatureMapOptions{.causal = true};
    expect_refusal("MultiHeadAttention with a feature_map",
                   [&] { MultiHeadAttention<float>(config).forward(x); });
    config = causal_layer();
    config.selected_blocks = SelectBlocksOptions{.block = 16};
    expect_refusal("MultiHeadAttention with selected_blocks",
                   [&] { MultiHeadAttention<float>(config).forward(x); });
    expect_refusal("lstm", [&] { LSTM<float>(kDividedWidth, 3, {}).forward(x, {}, {}); });
    const Variable<float> heads(Tensor<float>({1, 2, 4, 6}));
    expect_refusal("attention_weights", [&] { attention_weights(heads, heads); });
    expect_refusal("scaled_dot_product_attention with weights to look at", [&] {
      scaled_dot_product_attention(heads, heads, heads, {.return_attention = true});
    });
    expect_refusal("feature_map_attention",
                   [&] { feature_map_attention<float>({heads}, {heads}, {heads}); });
    expect_refusal("additive_scores",
                   [&] { additive_scores(x, x, Variable<float>(Tensor<float>({kDividedWidth}))); });
    MultiplicativeAttention<float> dot(kDividedWidth, kDividedWidth, LuongScore::kDot);
    expect_refusal("alignment", [&] { dot.forward(x, x); });
    EXPECT_NO_THROW(layer.forward(x));
  });
}

}  // namespace
}  // namespace heed::nn
