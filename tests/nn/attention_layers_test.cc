#include "heed/nn/attention_layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "heed/attention/position.h"
#include "heed/attention/reference.h"
#include "heed/attention/rotary.h"
#include "heed/core/parallel.h"
#include "heed/core/random.h"
#include "heed/nn/functional.h"
#include "support/gradcheck.h"
#include "support/heap.h"
#include "support/refusal.h"

namespace heed::nn { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::gradient_error;
using testing_support::kGradientTolerance;
using testing_support::max_difference;
using testing_support::normal;
using testing_support::normal_variable;
using testing_support::Refuses;

std::vector<std::string> names(const Module<>& module) {
  std::vector<std::string> result;
  for (const auto& [name, value] : module.state_dict()) result.push_back(name);
  return result;
}

TEST(AttentionLayers, HaveTheParametersOfTheirTextbooks) {
  EXPECT_EQ(MultiHeadAttention<>(fused_projection(64, 4)).num_parameters(), 16384);
  EXPECT_EQ(MultiHeadAttention<>(separate_projections(64, 8)).num_parameters(), 16640);
  EXPECT_EQ(MultiHeadAttention<>(cross_projections(512, 8)).num_parameters(), 1050624);
  EXPECT_EQ(SelfAttention<>(256).num_parameters(), 197376);
  EXPECT_EQ(SingleHeadAttention<>(4, 4).num_parameters(), 64);
  EXPECT_EQ(SingleHeadAttention<>(12, 5).num_parameters(), 4 * 12 * 5);
  EXPECT_EQ(CausalSelfAttention<>(64, 4).num_parameters(), 16640);
}

TEST(AttentionLayers, NameTheirStateAsTheirTextbooksDo) {
  EXPECT_THAT(names(MultiHeadAttention<>(fused_projection(4, 2))),
              ElementsAre("qkv_proj.weight", "out_proj.weight"));
  EXPECT_THAT(names(MultiHeadAttention<>(separate_projections(4, 2))),
              ElementsAre("q_proj.weight", "q_proj.bias", "k_proj.weight", "k_proj.bias",
                          "v_proj.weight", "v_proj.bias", "out_proj.weight", "out_proj.bias"));
  EXPECT_THAT(
      names(CausalSelfAttention<>(4, 2, 3)),
      ElementsAre("mask", "mha.W_q.weight", "mha.W_q.bias", "mha.W_k.weight", "mha.W_k.bias",
                  "mha.W_v.weight", "mha.W_v.bias", "mha.W_o.weight", "mha.W_o.bias"));
  EXPECT_THAT(names(SingleHeadAttention<>(4, 2)),
              ElementsAre("W_Q.weight", "W_K.weight", "W_V.weight", "W_O.weight"));
  EXPECT_THAT(names(SelfAttention<>(2)), ElementsAre("W_q.weight", "W_q.bias", "W_k.weight",
                                                     "W_k.bias", "W_v.weight", "W_v.bias"));
}

TEST(AttentionLayers, PrintThemselvesAsTheTextbook) {
  EXPECT_EQ(MultiHeadAttention<>(separate_projections(32, 4)).summary(),
            "MultiHeadAttention(\n"
            "  (q_proj): Linear(in_features=32, out_features=32, bias=True)\n"
            "  (k_proj): Linear(in_features=32, out_features=32, bias=True)\n"
            "  (v_proj): Linear(in_features=32, out_features=32, bias=True)\n"
            "  (out_proj): Linear(in_features=32, out_features=32, bias=True)\n"
            "  (attention): ScaledDotProductAttention()\n"
            "  (dropout): Dropout(p=0.0, inplace=False)\n"
            ")");
}

TEST(AttentionLayers, KnowTheirScale) {
  const MultiHeadAttention<> layer(twice_dropped(128, 8));
  EXPECT_EQ(layer.head_dim(), 16);
  EXPECT_EQ(layer.scale(), 0.25);
}

TEST(AttentionLayers, HaveGradients) {
  const Variable<double> x = normal_variable({2, 5, 4}, 1);
  const Variable<double> context = normal_variable({2, 3, 4}, 2);
  for (const auto& config :
       {fused_projection(4, 2, 0), separate_projections(4, 2), cross_projections(4, 1, 0.3)}) {
    MultiHeadAttention<double> layer(config);
    auto inputs = layer.parameters();
    inputs.push_back(x);
    const auto forward = [&] {
      set_seed(7);
      return layer.forward(x, {.mask = causal()}).out;
    };
    EXPECT_LE(gradient_error(inputs, forward), kGradientTolerance) << config.inputs.front();
  }
  MultiHeadAttention<double> cross(cross_projections(4, 2, 0));
  auto inputs = cross.parameters();
  inputs.insert(inputs.end(), {x, context});
  EXPECT_LE(gradient_error(inputs, [&] { return cross.forward(x, context, context * 2.0).out; }),
            kGradientTolerance);
}

// The returned weights are those that the output uses: out = weights · value.
TEST(AttentionLayers, ReturnWeightsAfterDropout) {
  const Variable<double> query(normal<double>({2, 3, 5, 4}, 1));
  const Variable<double> key(normal<double>({2, 3, 7, 4}, 2));
  const Variable<double> value(normal<double>({2, 3, 7, 2}, 3));
  const auto [out, weights] = scaled_dot_product_attention(
      query, key, value, {.mask = causal_bottom_right(), .return_attention = true}, {0.4F, 11});
  EXPECT_LE(max_difference<double>(matmul(Variable<double>(weights), value).value(), out.value()),
            1e-14);
}

TEST(AttentionLayers, ReturnTheRowsAskedFor) {
  MultiHeadAttention<> layer(cross_projections(8, 2, 0));
  const Variable<float> x(normal<float>({2, 5, 8}, 1));
  const auto all = layer.forward(x, {.return_attention = true});
  const auto some = layer.forward(x, {.rows = {{1, 0, 3}, {0, 1, 4}}});
  EXPECT_EQ(all.weights.shape(), (Shape{2, 2, 5, 5}));
  ASSERT_EQ(some.weights.shape(), (Shape{2, 5}));
  for (int k = 0; k < 5; ++k) {
    EXPECT_EQ(some.weights(0, k), all.weights(1, 0, 3, k));
    EXPECT_EQ(some.weights(1, k), all.weights(0, 1, 4, k));
  }
  EXPECT_TRUE(layer.forward(x).weights.empty());
}

TEST(AttentionLayers, SelfAttentionHasNoAxisForItsHead) {
  SelfAttention<> layer(8);
  const Variable<float> x(normal<float>({2, 5, 8}, 1));
  EXPECT_EQ(layer.forward(x, {.return_attention = true}).weights.shape(), (Shape{2, 5, 5}));
  EXPECT_EQ(layer.forward(x, {.rows = {{1, 0, 3}}}).weights.shape(), (Shape{1, 5}));
  EXPECT_THAT(
      [] { MultiHeadAttention<>({.embed_dim = 4, .num_heads = 2, .has_head_axis = false}); },
      Refuses("num_heads", "2"));
}

TEST(AttentionLayers, SingleHeadAttentionHasNoAxisForItsHead) {
  SingleHeadAttention<> layer(8, 3);
  const Variable<float> x(normal<float>({2, 5, 8}, 1));
  EXPECT_EQ(layer.forward(x, {.return_attention = true}).weights.shape(), (Shape{2, 5, 5}));
}

TEST(AttentionLayers, NeedNoConfiguration) {
  set_seed(3);
  MultiHeadAttention<> plain(8, 2);
  set_seed(3);
  MultiHeadAttention<> configured(separate_projections(8, 2));
  EXPECT_EQ(plain.summary(), configured.summary());
  const Variable<float> x(randn({2, 5, 8}));
  EXPECT_TRUE(
      testing_support::same_bits(plain.forward(x).out.value(), configured.forward(x).out.value()));
}

TEST(AttentionLayers, GiveTheirProjectionsByTheNamesOfTheEquations) {
  const SingleHeadAttention<> layer(4, 2);
  const auto state = layer.state_dict();
  const auto is = [&](const Variable<float>& weight, std::size_t index) {
    return weight.value().data() == std::get<FloatView>(state[index].value).data();
  };
  EXPECT_TRUE(is(layer.W_Q().weight(), 0));
  EXPECT_TRUE(is(layer.W_K().weight(), 1));
  EXPECT_TRUE(is(layer.W_V().weight(), 2));
  EXPECT_TRUE(is(layer.W_O().weight(), 3));
  const MultiHeadAttention<> fused(fused_projection(4, 2));
  EXPECT_THAT([&] { fused.W_K(); },
              ThrowsMessage<InvalidArgument>(HasSubstr("qkv_proj projects to query, key and value "
                                                       "at once")));
  const SelfAttention<> self(4);
  EXPECT_THAT([&] { self.W_O(); },
              ThrowsMessage<InvalidArgument>(HasSubstr("no projection of the output")));
}

TEST(AttentionLayers, CausalOnesSeeNoFuture) {
  CausalSelfAttention<> causal_layer(8, 2, 6, 0);
  SingleHeadAttention<> single(8, 3);
  const Tensor<float> x = normal<float>({1, 6, 8}, 1);
  Tensor<float> changed = x;
  changed(0, 5, 0) += 1;
  const auto same_but_last = [&](auto& layer) {
    const auto before = layer.forward(Variable<float>(x)).out;
    const auto after = layer.forward(Variable<float>(changed)).out;
    EXPECT_EQ(max_difference(before.value().slice(1, 0, 5), after.value().slice(1, 0, 5)), 0);
    EXPECT_GT(max_difference(before.value(), after.value()), 0);
  };
  same_but_last(causal_layer);
  same_but_last(single);
}

TEST(AttentionLayers, AProjectedSourceIsTheSameSource) {
  MultiHeadAttention<double> layer(cross_projections(8, 2, 0));
  const Variable<double> query = normal_variable({2, 3, 8}, 1);
  const Variable<double> source = normal_variable({2, 5, 8}, 2);
  const auto direct = layer.forward(query, source, source, {.return_attention = true});
  const auto [out, weights] =
      layer.attend_to(query, layer.project(source), {.return_attention = true});
  EXPECT_EQ(max_difference(out.value(), direct.out.value()), 0);
  EXPECT_EQ(max_difference<double>(weights, direct.weights), 0);
  EXPECT_THAT(
      [&] {
        layer.attend_to(query, {query, {}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("has not been projected by this layer")));
}

// Returns every term of a layer, alone and together.
std::vector<AttentionConfig> with_terms() {
  const AttentionConfig separate{.embed_dim = 8, .num_heads = 4, .num_kv_heads = 2};
  AttentionConfig fused = fused_projection(8, 4, 0);
  fused.num_kv_heads = 1;
  std::vector<AttentionConfig> configs{separate, fused};
  for (AttentionConfig config : {separate, fused}) {
    config.mask = causal() & sliding_window(2, 0);
    config.softcap = 1.5;
    configs.push_back(config);
    config.rotary = {.max_len = 6, .base = 50, .pairing = RotaryPairing::kNeighbours};
    config.scale = 0.4;
    configs.push_back(config);
    config.rotary = {};
    config.alibi = true;
    configs.push_back(config);
  }
  return configs;
}

TEST(AttentionLayers, WithTermsHaveGradients) {
  const Variable<double> x = normal_variable({2, 5, 8}, 1);
  const LearnedTerms<double> terms{normal_variable({4}, 2), normal_variable({4, 5, 5}, 3),
                                   normal_variable({4}, 4)};
  for (const auto& config : with_terms()) {
    MultiHeadAttention<double> layer(config);
    auto inputs = layer.parameters();
    inputs.push_back(x);
    EXPECT_LE(gradient_error(inputs, [&] { return layer.forward(x).out; }), kGradientTolerance);
    inputs.insert(inputs.end(), {terms.alibi_slopes, terms.bias, terms.sinks});
    EXPECT_LE(gradient_error(inputs, [&] { return layer.forward(x, {.terms = terms}).out; }),
              kGradientTolerance);
  }
}

TEST(AttentionLayers, LearnRelativePositions) {
  const Variable<double> x = normal_variable({2, 5, 8}, 1);
  MultiHeadAttention<double> layer({.embed_dim = 8,
                                    .num_heads = 4,
                                    .num_kv_heads = 2,
                                    .relative_bias = RelativeBuckets::t5(8, 6),
                                    .relative_vectors = RelativeBuckets::clip(2)});
  std::vector<std::string> shapes;
  for (const auto& [name, variable] : layer.named_parameters()) {
    if (name.starts_with("relative")) shapes.push_back(name + to_string(variable.shape()));
  }
  EXPECT_THAT(shapes, testing::ElementsAre("relative_bias[4, 8]", "relative_key[5, 2]",
                                           "relative_value[5, 2]"));
  auto inputs = layer.parameters();
  inputs.push_back(x);
  EXPECT_LE(gradient_error(inputs, [&] { return layer.forward(x).out; }), kGradientTolerance);
}

// The terms of a layer equal the options of the operator.
TEST(AttentionLayers, WithTermsAreTheOperatorWithOptions) {
  const Variable<double> x = normal_variable({2, 5, 8}, 1);
  MultiHeadAttention<double> layer(
      {.embed_dim = 8,
       .num_heads = 4,
       .num_kv_heads = 2,
       .mask = sliding_window(2, 0),
       .scale = 0.3,
       .softcap = 2,
       .alibi = true,
       .rotary = {.max_len = 9, .base = 50, .pairing = RotaryPairing::kHalves}});
  const Variable<double> bias = normal_variable({4, 5, 5}, 2);
  const auto [out, weights] = layer.forward(
      x, {.mask = causal(), .terms = {.bias = bias}, .query_offset = 0, .return_attention = true});

  const auto [cos, sin] = rotary_caches<double>(9, 2, 50);
  const auto heads = [&](const Linear<double>& projection, std::int64_t count) {
    return split_heads(linear(x, projection.weight(), projection.bias()).value(), count);
  };
  const Tensor<double> slopes = alibi_slopes<double>(4);
  const auto expected = reference::attention(
      heed::rotary_embedding(heads(layer.W_Q(), 4), cos, sin, RotaryPairing::kHalves),
      heed::rotary_embedding(heads(layer.W_K(), 2), cos, sin, RotaryPairing::kHalves),
      heads(layer.W_V(), 2),
      {.mask = causal() & sliding_window(2, 0),
       .alibi_slopes = slopes,
       .bias = bias.value(),
       .scale = 0.3,
       .softcap = 2},
      reference::Keep::kWeights);
  EXPECT_LE(max_difference<double>(weights, expected.weights), 1e-14);
  const Variable<double> merged(merge_heads(expected.out));
  EXPECT_LE(max_difference<double>(
                out.value(), linear(merged, layer.W_O().weight(), layer.W_O().bias()).value()),
            1e-14);
}

// Fewer key heads equal repeated key heads.
TEST(AttentionLayers, ShareKeyHeads) {
  MultiHeadAttention<double> grouped({.embed_dim = 8, .num_heads = 4, .num_kv_heads = 2});
  MultiHeadAttention<double> all({.embed_dim = 8, .num_heads = 4});
  EXPECT_EQ(grouped.W_K().weight().shape(), (Shape{4, 8}));
  EXPECT_EQ(grouped.W_V().bias().shape(), (Shape{4}));
  EXPECT_EQ(grouped.num_kv_heads(), 2);
  EXPECT_EQ(all.num_kv_heads(), 4);
  const auto copy = [](const Variable<double>& from, const Variable<double>& to, bool repeats) {
    const std::int64_t width = from.rank() == 2 ? from.extent(1) : 1;
    for (std::int64_t row = 0; row < to.extent(0); ++row) {
      const std::int64_t source = repeats ? row / 4 * 2 + row % 2 : row;  // of head_dim 2
      std::copy_n(from.value().data() + source * width, width,
                  to.writable_value().data() + row * width);
    }
  };
  const auto copy_layer = [&](const Linear<double>& from, const Linear<double>& to, bool repeats) {
    copy(from.weight(), to.weight(), repeats);
    copy(from.bias(), to.bias(), repeats);
  };
  copy_layer(grouped.W_Q(), all.W_Q(), false);
  copy_layer(grouped.W_K(), all.W_K(), true);
  copy_layer(grouped.W_V(), all.W_V(), true);
  copy_layer(grouped.W_O(), all.W_O(), false);
  const Variable<double> x = normal_variable({2, 5, 8}, 1);
  const Variable<double> source = normal_variable({2, 3, 8}, 2);
  EXPECT_LE(max_difference(grouped.forward(x).out.value(), all.forward(x).out.value()), 1e-14);
  EXPECT_LE(max_difference(grouped.attend_to(x, grouped.project(source)).out.value(),
                           all.attend_to(x, all.project(source)).out.value()),
            1e-14);
  AttentionConfig fused = fused_projection(8, 4);
  fused.num_kv_heads = 1;
  EXPECT_EQ(MultiHeadAttention<>(fused).parameters()[0].shape(), (Shape{8 + 2 * 2, 8}));
}

// A query at position t attends as the t-th query of a longer sequence.
TEST(AttentionLayers, KnowWhereQueriesStand) {
  MultiHeadAttention<double> layer({.embed_dim = 8,
                                    .num_heads = 2,
                                    .alibi = true,
                                    .rotary = {.max_len = 7, .pairing = RotaryPairing::kHalves}});
  const Variable<double> x = normal_variable({1, 7, 8}, 1);
  const Variable<double> last = slice(x, 1, 5, 7);
  const auto whole = layer.forward(x, {.mask = causal()});
  const auto end = layer.forward(last, x, x, {.mask = causal(), .query_offset = 5});
  EXPECT_LE(max_difference(whole.out.value().slice(1, 5, 7), end.out.value()), 1e-14);
  EXPECT_THAT([&] { layer.forward(last, x, x, {.query_offset = 6}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("2 tokens from offset 6")));
}

TEST(AttentionLayers, KeepConstantsOutOfTheirState) {
  const MultiHeadAttention<> plain(separate_projections(8, 2));
  AttentionConfig config = separate_projections(8, 2);
  config.alibi = true;
  config.rotary = {.max_len = 100, .pairing = RotaryPairing::kHalves};
  EXPECT_EQ(names(MultiHeadAttention<>(config)), names(plain));
}

// As in a model whose forward() makes them: the tensors end before backward() reads them.
TEST(AttentionLayers, OwnTheTermsOfACall) {
  MultiHeadAttention<double> layer(separate_projections(8, 2));
  auto inputs = layer.parameters();
  inputs.push_back(normal_variable({2, 5, 8}, 1));
  EXPECT_LE(gradient_error(inputs,
                           [&] {
                             return layer
                                 .forward(inputs.back(),
                                          {.terms = {.alibi_slopes = Tensor<double>({2}, {1, 2}),
                                                     .bias = normal<double>({5, 5}, 2)}})
                                 .out;
                           }),
            kGradientTolerance);
}

// The memory in units of the input's size. A graph keeps the projection (3), the attention output
// and the output; forward() needs no more. Backward puts gradients into the projection's memory
// when nothing needs it any more.
TEST(AttentionLayers, CopyNothingToSplitOrMergeHeads) {
  set_num_threads(1);  // each has memory of its own
  MultiHeadAttention<> layer(fused_projection(256, 8, 0));
  const Variable<float> x(normal<float>({8, 256, 256}, 1));
  const Tensor<float> grad = normal<float>(x.shape(), 2);
  const double unit = 4.0 * 8 * 256 * 256;
  const testing_support::NothingKept nothing_kept;
  const std::int64_t before = testing_support::live_heap_bytes();
  const auto peak = [&] {
    return static_cast<double>(testing_support::peak_heap_bytes() - before) / unit;
  };
  testing_support::reset_heap_peak();
  const auto attended = layer.forward(x);
  EXPECT_LT(peak(), 5.5);
  testing_support::reset_heap_peak();
  attended.out.backward(grad);
  EXPECT_LT(peak(), 10.5);
  set_num_threads(0);
}

TEST(AttentionLayers, RefuseMisuse) {
  EXPECT_THAT([] { MultiHeadAttention<>(cross_projections(6, 4)); },
              ThrowsMessage<InvalidArgument>(HasSubstr("6 is not a multiple of num_heads, 4")));
  EXPECT_THAT([] { MultiHeadAttention<>(cross_projections(0, 1)); }, Refuses("embed_dim", "0"));
  EXPECT_THAT(
      [] {
        MultiHeadAttention<>({.embed_dim = 4, .inputs = {"a", "b"}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("2 names, expected one or three")));
  EXPECT_THAT([] { MultiHeadAttention<>({.embed_dim = 8, .num_heads = 4, .num_kv_heads = 3}); },
              Refuses("num_kv_heads", "3"));
  EXPECT_THAT([] { MultiHeadAttention<>({.embed_dim = 8, .num_heads = 4, .num_kv_heads = -4}); },
              Refuses("num_kv_heads", "-4"));
  EXPECT_THAT(
      [] { MultiHeadAttention<>({.embed_dim = 8, .rotary = {.max_len = 3, .rotary_dim = 10}}); },
      Refuses("rotary_dim", "10"));
  EXPECT_THAT([] { MultiHeadAttention<>({.embed_dim = 8, .rotary = {.max_len = -1}}); },
              Refuses("max_len", "-1"));
  MultiHeadAttention<> fused(fused_projection(4, 2));
  const Variable<float> x(normal<float>({1, 3, 4}, 1));
  const Variable<float> y(normal<float>({1, 3, 4}, 2));
  EXPECT_THAT([&] { fused.forward(x, y, y); },
              ThrowsMessage<InvalidArgument>(HasSubstr("qkv_proj projects one input")));
  EXPECT_THAT([&] { fused.project(x); },
              ThrowsMessage<InvalidArgument>(HasSubstr("qkv_proj projects one input")));
  EXPECT_THAT(
      [&] {
        fused.forward(Variable<float>(Tensor<float>({3, 4})));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("shape [3, 4], expected [batch, length")));
  CausalSelfAttention<> causal_layer(4, 2, 2);
  EXPECT_THAT([&] { causal_layer.forward(x); }, Refuses("max_len", "2"));
}

}  // namespace
}  // namespace heed::nn
