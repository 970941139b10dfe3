#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "heed/attention/diagnostics.h"
#include "heed/core/random.h"
#include "heed/nn/attention_layers.h"
#include "heed/nn/seq2seq.h"

namespace heed::nn { namespace {

using testing::ElementsAre;

TEST(AttentionObserver, SeesWhatEveryLayerAttendsWith) {
  set_seed(0);
  AttentionSeq2Seq<> model({.src_vocab_size = 9,
                            .tgt_vocab_size = 7,
                            .d_model = 8,
                            .num_heads = 2,
                            .num_layers = 1,
                            .dropout = 0});
  const auto src = default_generator().randint(0, 9, {2, 5});
  const auto tgt = default_generator().randint(0, 7, {2, 3});
  std::vector<std::string> layers;
  AttentionDiagnostics cross;
  Tensor<float> weights;
  {
    const AttentionObserver<> observer(
        model, [&](const std::string& layer, const AttentionCall<float>& call) {
          layers.push_back(layer);
          EXPECT_EQ(call.key.shape(), (Shape{2, 2, 5, 4}));
          cross = attention_diagnostics(call.query, call.key, call.options, {.kv_lengths = {5, 3}});
        });
    weights = model.forward(src, tgt, {5, 3}).weights;
  }
  EXPECT_THAT(layers, ElementsAre("encoder_attention", "cross_attention"));
  const auto of_weights = weight_diagnostics(weights, {}, {.kv_lengths = {5, 3}});
  ASSERT_EQ(cross.heads.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(cross.heads[i].entropy, of_weights.heads[i].entropy, 1e-6);
    EXPECT_NEAR(cross.heads[i].vertical, of_weights.heads[i].vertical, 1e-6);
    EXPECT_EQ(cross.heads[i].padding, 0);
  }
  // There is no observer any more.
  model.forward(src, tgt);
  EXPECT_EQ(layers.size(), 2U);
}

TEST(AttentionObserver, IsShownTheMaskOfTheLayerToo) {
  set_seed(0);
  CausalMultiHeadAttention<double> layer(4, 2, 10, 0);
  int calls = 0;
  const AttentionObserver<double> observer(
      layer, [&](const std::string& name, const AttentionCall<double>& call) {
        ++calls;
        EXPECT_EQ(name, "mha");
        EXPECT_EQ(call.options.mask.description(), causal().description());
      });
  layer.forward(Variable<double>(default_generator().randn<double>({1, 3, 4})));
  EXPECT_EQ(calls, 1);
}

// The observer receives everything that diagnostics need to recompute the layer's weights.
TEST(AttentionObserver, IsShownTheTermsOfTheLayer) {
  set_seed(0);
  MultiHeadAttention<> layer({.embed_dim = 8,
                              .num_heads = 4,
                              .num_kv_heads = 2,
                              .mask = sliding_window(2, 0),
                              .softcap = 1,
                              .alibi = true,
                              .rotary = {.max_len = 5, .pairing = RotaryPairing::kHalves}});
  Tensor<float> shown;
  layer.observe([&](const AttentionCall<float>& call) {
    EXPECT_EQ(call.key.shape(), (Shape{1, 2, 5, 2}));
    shown =
        attention_weights(call.query, call.key, std::vector<AttentionRow>{{0, 3, 4}}, call.options);
  });
  const Variable<float> x(default_generator().randn({1, 5, 8}));
  const auto attended =
      layer.forward(x, {.terms = {.bias = default_generator().randn({5, 5})}, .rows = {{0, 3, 4}}});
  for (int k = 0; k < 5; ++k) EXPECT_EQ(shown(0, k), attended.weights(0, k));
}

TEST(Module, CallsForEachPartByItsFullName) {
  set_seed(0);
  CausalSelfAttention<> model(4, 2);
  std::vector<std::string> names;
  model.for_each_part([&](const std::string& name, Module<>& part) {
    names.push_back(name + " " + part.class_name());
  });
  EXPECT_THAT(names, ElementsAre("mha MultiHeadAttention", "mha.W_q Linear", "mha.W_k Linear",
                                 "mha.W_v Linear", "mha.W_o Linear", "mha.dropout Dropout"));
}

}  // namespace
}  // namespace heed::nn
