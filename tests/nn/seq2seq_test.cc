#include "heed/nn/seq2seq.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "heed/core/random.h"
#include "support/gradcheck.h"
#include "support/refusal.h"

namespace heed::nn { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::gradient_error;
using testing_support::kGradientTolerance;
using testing_support::max_difference;
using testing_support::Message;
using testing_support::normal_variable;

constexpr SourceAttention kKinds[] = {SourceAttention::kNone, SourceAttention::kAdditive,
                                      SourceAttention::kDot, SourceAttention::kGeneral,
                                      SourceAttention::kConcat};

AttentionSeq2SeqConfig small_attention() {
  return {.src_vocab_size = 7,
          .tgt_vocab_size = 5,
          .d_model = 8,
          .num_heads = 2,
          .num_layers = 2,
          .dropout = 0.2};
}

RecurrentSeq2SeqConfig small_recurrent(SourceAttention attention) {
  return {.src_vocab_size = 7,
          .tgt_vocab_size = 5,
          .d_model = 8,
          .num_layers = 2,
          .attention = attention,
          .dropout = 0.2};
}

// Returns one model of each kind, in evaluation mode.
std::vector<std::unique_ptr<Seq2Seq<>>> one_of_each() {
  std::vector<std::unique_ptr<Seq2Seq<>>> models;
  models.push_back(std::make_unique<AttentionSeq2Seq<>>(small_attention()));
  for (const SourceAttention kind : kKinds) {
    models.push_back(std::make_unique<RecurrentSeq2Seq<>>(small_recurrent(kind)));
  }
  for (const auto& model : models) model->eval();
  return models;
}

TEST(Seq2SeqModels, AttentionHasTheTextbooksSizes) {
  AttentionSeq2Seq<> model({.src_vocab_size = 10000, .tgt_vocab_size = 8000});
  EXPECT_EQ(model.num_parameters(), 9034560);
  const auto src = default_generator().randint(0, 10000, {4, 30});
  const auto tgt = default_generator().randint(0, 8000, {4, 25});
  const auto [logits, weights, state] = model.forward(src, tgt);
  EXPECT_EQ(logits.shape(), (Shape{4, 25, 8000}));
  EXPECT_EQ(weights.shape(), (Shape{4, 8, 25, 30}));
}

TEST(Seq2SeqModels, WithoutAttentionHasAsManyParametersAsDot) {
  EXPECT_EQ(RecurrentSeq2Seq<>(small_recurrent(SourceAttention::kNone)).num_parameters(),
            RecurrentSeq2Seq<>(small_recurrent(SourceAttention::kDot)).num_parameters());
}

TEST(Seq2SeqModels, PaddingChangesNothing) {
  const Tensor<std::int64_t> src({2, 4}, {1, 2, 3, 4, 5, 6, 0, 0});
  const Tensor<std::int64_t> alone({1, 2}, {5, 6});
  const Tensor<std::int64_t> tgt({2, 3}, {1, 2, 3, 4, 0, 1});
  for (const auto& model : one_of_each()) {
    const auto padded = model->forward(src, tgt, {4, 2});
    const auto single = model->forward(alone, to_tensor(tgt.view().slice(0, 1, 2)));
    EXPECT_LE(max_difference(padded.logits.value().slice(0, 1, 2), single.logits.value()), 1e-6);
    if (padded.weights.empty()) continue;
    for_each_element(padded.weights.view().slice(0, 1, 2).slice(3, 2, 4),
                     [](float weight) { EXPECT_EQ(weight, 0); });
  }
}

TEST(Seq2SeqModels, DecodeTokenByTokenAsAtOnce) {
  const Tensor<std::int64_t> src({2, 4}, {1, 2, 3, 4, 5, 6, 1, 0});
  const Tensor<std::int64_t> tgt({2, 3}, {1, 2, 3, 4, 0, 1});
  for (const auto& model : one_of_each()) {
    const auto at_once = model->forward(src, tgt, {4, 3});
    const auto encoded = model->encode(src, {4, 3});
    DecoderState<float> state = encoded.start;
    for (std::int64_t t = 0; t < 3; ++t) {
      const auto step = model->decode(to_tensor(tgt.view().slice(1, t, t + 1)), encoded, state);
      EXPECT_LE(
          max_difference<float>(step.logits.value(), at_once.logits.value().slice(1, t, t + 1)),
          1e-5);
      if (!step.weights.empty()) {
        EXPECT_LE(
            max_difference<float>(step.weights.view(), at_once.weights.view().slice(2, t, t + 1)),
            1e-6);
      }
      state = step.state;
      EXPECT_EQ(state.position, t + 1);
    }
  }
}

TEST(Seq2SeqModels, WeightsSumToOne) {
  const Tensor<std::int64_t> src({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor<std::int64_t> tgt({2, 2}, {1, 2, 3, 4});
  for (const auto& model : one_of_each()) {
    const auto decoded = model->forward(src, tgt, {3, 1});
    for (std::int64_t row = 0; row * 3 < decoded.weights.num_elements(); ++row) {
      const float* weights = decoded.weights.data() + row * 3;
      EXPECT_NEAR(weights[0] + weights[1] + weights[2], 1, 1e-6);
    }
    EXPECT_TRUE(model->forward(src, tgt, {}, false).weights.empty());
  }
}

TEST(Seq2SeqModels, AdditiveScoresHaveGradients) {
  for (const auto& [kv_len, q_len, dim] :
       {std::tuple{3, 2, 5}, std::tuple{1, 1, 1}, std::tuple{4, 0, 2}, std::tuple{0, 2, 2}}) {
    const auto keys = normal_variable({2, kv_len, dim}, 1);
    const auto queries = normal_variable({2, q_len, dim}, 2);
    const auto weight = normal_variable({dim}, 3);
    EXPECT_LE(gradient_error({keys, queries, weight},
                             [&] { return additive_scores(keys, queries, weight); }),
              kGradientTolerance);
  }
  EXPECT_THAT(
      [] {
        additive_scores(normal_variable({2, 3, 4}, 1), normal_variable({2, 3, 5}, 1),
                        normal_variable({4}, 1));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("queries [2, 3, 5] and weight [4]")));
}

TEST(Seq2SeqModels, RefuseWhatDoesNotFit) {
  const auto refuses = [](const auto& call, const Message& text) {
    EXPECT_THAT(call, ThrowsMessage<InvalidArgument>(text));
  };
  refuses([] { AttentionSeq2Seq<>({.src_vocab_size = 3}); }, {"tgt_vocab_size", "0"});
  refuses([] { RecurrentSeq2Seq<>({.src_vocab_size = 3, .tgt_vocab_size = 2, .d_model = 7}); },
          {"d_model", "7"});
  const Tensor<std::int64_t> src({2, 3}, {1, 2, 3, 4, 5, 6});
  for (const auto& model : one_of_each()) {
    refuses([&] { model->encode(src.view().select(0, 0)); }, {"src", "[3]"});
    refuses([&] { model->encode(src, {3}); }, "encode: 1 lengths are given for a batch of 2");
    refuses([&] { model->encode(src, {3, 4}); }, {"length", "4"});
    refuses([&] { model->forward(src, src.view().slice(0, 0, 1)); }, {"tgt", "1"});
    refuses(
        [&] {
          model->encode(Tensor<std::int64_t>({1, 1}, {7}));
        },
        "token id 7 is not in the table of 7");
  }
}

}  // namespace
}  // namespace heed::nn
