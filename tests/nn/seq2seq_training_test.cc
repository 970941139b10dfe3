#include "heed/nn/seq2seq_training.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "heed/core/random.h"
#include "heed/nn/search.h"
#include "heed/nn/special_tokens.h"
#include "support/refusal.h"

namespace heed::nn { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::Refuses;
using Ids = std::vector<std::int64_t>;

TEST(SequenceBatches, ArePaddedAndShifted) {
  const std::vector<SequencePair> pairs{{{4, 5, 6}, {7}}, {{8}, {9, 10}}, {{4}, {}}};
  const SequenceBatch batch = make_batch(pairs);
  EXPECT_THAT(batch.src.elements(), ElementsAre(4, 5, 6, 8, 0, 0, 4, 0, 0));
  EXPECT_THAT(batch.src_lengths, ElementsAre(3, 1, 1));
  EXPECT_THAT(batch.tgt_in.elements(), ElementsAre(1, 7, 0, 1, 9, 10, 1, 0, 0));
  EXPECT_THAT(batch.tgt_out.elements(), ElementsAre(7, 2, 0, 9, 10, 2, 2, 0, 0));
  EXPECT_EQ(batch.num_targets, 6);
}

TEST(SequenceBatches, HoldEveryPairOnce) {
  std::vector<SequencePair> pairs;
  for (std::int64_t i = 0; i < 401; ++i) {
    pairs.push_back({Ids(static_cast<std::size_t>(1 + i * 7 % 23), 4), {}});
  }
  set_seed(1);
  const auto batches = shuffled_batches(pairs, 4);
  std::set<std::int64_t> seen;
  std::size_t padding = 0;
  for (const auto& batch : batches) {
    EXPECT_LE(batch.size(), 4);
    std::size_t longest = 0;
    for (const std::int64_t index : batch) {
      EXPECT_TRUE(seen.insert(index).second);
      longest = std::max(longest, pairs[static_cast<std::size_t>(index)].source.size());
    }
    for (const std::int64_t index : batch) {
      padding += longest - pairs[static_cast<std::size_t>(index)].source.size();
    }
  }
  EXPECT_EQ(seen.size(), 401);
  EXPECT_LT(padding, 401);  // less than one token per sequence
  set_seed(1);
  EXPECT_EQ(shuffled_batches(pairs, 4), batches);
  EXPECT_NE(shuffled_batches(pairs, 4), batches);
  TorchGenerator random(1);
  EXPECT_EQ(shuffled_batches(pairs, 4, random), batches);
  EXPECT_TRUE(shuffled_batches({}, 4).empty());
}

TEST(SequenceBatches, RefuseWhatDoesNotFit) {
  EXPECT_THAT([] { make_batch({}); }, ThrowsMessage<InvalidArgument>(HasSubstr("pairs is empty")));
  const std::vector<SequencePair> empty{{{}, {1}}};
  EXPECT_THAT([&] { make_batch(empty); },
              ThrowsMessage<InvalidArgument>(HasSubstr("a source is empty")));
  EXPECT_THAT([&] { shuffled_batches(empty, 0); }, Refuses("batch_size", "0"));
}

// Returns sequences to be reversed.
std::vector<SequencePair> handful() {
  const std::vector<Ids> sources{{4, 5, 6}, {6, 4}, {5}, {7, 7, 4, 5}, {4, 6, 5}, {6, 5, 7}};
  std::vector<SequencePair> pairs;
  pairs.reserve(sources.size());
  for (const Ids& source : sources) pairs.push_back({source, {source.rbegin(), source.rend()}});
  return pairs;
}

std::unique_ptr<Seq2Seq<>> tiny_model(int kind) {
  if (kind == 0) {
    return std::make_unique<AttentionSeq2Seq<>>(AttentionSeq2SeqConfig{.src_vocab_size = 8,
                                                                       .tgt_vocab_size = 8,
                                                                       .d_model = 16,
                                                                       .num_heads = 2,
                                                                       .num_layers = 1,
                                                                       .dropout = 0});
  }
  return std::make_unique<RecurrentSeq2Seq<>>(
      RecurrentSeq2SeqConfig{.src_vocab_size = 8,
                             .tgt_vocab_size = 8,
                             .d_model = 16,
                             .num_layers = 1,
                             .attention = static_cast<SourceAttention>(kind - 1),
                             .dropout = 0});
}

class EachKind : public testing::TestWithParam<int> {};

TEST_P(EachKind, LearnsAHandfulByHeart) {
  set_seed(0);
  const auto model = tiny_model(GetParam());
  const auto pairs = handful();
  const SequenceBatch batch = make_batch(pairs);
  Adam<> optimizer(model->parameters(), 2e-2);
  for (int step = 0; step < 120; ++step) train_step(*model, optimizer, batch);
  EXPECT_LT(seq2seq_loss(*model, batch).item(), 0.05);

  const auto found = greedy_search(*model, batch.src, batch.src_lengths, {.max_len = 9});
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    EXPECT_EQ(found[i].tokens, pairs[i].target);
    EXPECT_TRUE(found[i].is_complete);
    const auto length = static_cast<std::int64_t>(pairs[i].source.size());
    const Tensor<std::int64_t> src({length}, pairs[i].source);
    const auto best = beam_search(*model, src, {.beam = 3, .max_len = 9});
    ASSERT_EQ(best.size(), 3);
    EXPECT_EQ(best.front().tokens, pairs[i].target);
    EXPECT_NEAR(best.front().log_probability, found[i].log_probability, 1e-4);
  }
  EXPECT_TRUE(model->is_training());
}

INSTANTIATE_TEST_SUITE_P(Seq2SeqTraining, EachKind, testing::Range(0, 6));

TEST(Seq2SeqTraining, RefusesALossThatIsNoNumber) {
  const auto model = tiny_model(1);
  model->parameters().front().writable_value().data()[4 * 16] =
      std::numeric_limits<float>::quiet_NaN();
  Adam<> optimizer(model->parameters());
  EXPECT_THAT([&] { train_step(*model, optimizer, make_batch(handful())); },
              Refuses("loss", "nan"));
}

}  // namespace
}  // namespace heed::nn
