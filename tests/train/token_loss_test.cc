// Counts of correct predictions.
#include "heed/train/token_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "heed/nn/ops.h"

namespace heed::train { namespace {

// For any model the score counts its most likely tokens.
TEST(TokenScore, CountsWhatIsToBePredicted) {
  models::CausalTransformer model(
      {.vocab_size = 5, .context = 8, .layers = 1, .d_model = 8, .heads = 2});
  model.eval();
  tasks::TokenBatch batch{Tensor<std::int64_t>({2, 3}), Tensor<std::int64_t>({2, 3})};
  for (std::int64_t i = 0; i < 6; ++i) batch.inputs.data()[i] = i % 5;
  const nn::NoGrad no_grad;
  const nn::Variable<> logits = model.forward(batch.inputs);
  const auto likeliest = [&](std::int64_t row, std::int64_t at) {
    std::int64_t best = 0;
    for (std::int64_t token = 1; token < 5; ++token) {
      if (logits.value()(row, at, token) > logits.value()(row, at, best)) best = token;
    }
    return best;
  };
  // Row 0: one correct, one wrong, one ignored. Row 1: one correct.
  for (std::int64_t i = 0; i < 6; ++i) batch.targets.data()[i] = nn::kIgnoreIndex;
  batch.targets(0, 0) = likeliest(0, 0);
  batch.targets(0, 2) = (likeliest(0, 2) + 1) % 5;
  batch.targets(1, 1) = likeliest(1, 1);
  const TokenScore score = token_score(model, batch);
  EXPECT_DOUBLE_EQ(score.accuracy, 2.0 / 3);
  EXPECT_DOUBLE_EQ(score.exact_match, 0.5);
}

}  // namespace
}  // namespace heed::train
