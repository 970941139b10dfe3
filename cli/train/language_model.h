// What a causal model does with a text: batches to learn from, its loss, what it would write.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "heed/nn/variable.h"
#include "heed/random.h"
#include "train/causal_model.h"

namespace heed::cli {

using Ids = std::span<const std::int32_t>;

// The mean loss in nats of predicting each token of `batch` sequences of `length` tokens, which
// start at random places of `text`.
nn::Variable<> random_batch_loss(CausalModel& model, Ids text, std::int64_t batch,
                                 std::int64_t length);

// Of a longer text as many are measured, in sequences spread evenly over it: measuring all of a
// long one takes longer than the training did.
constexpr std::int64_t kMaxMeasuredTokens = std::int64_t{1} << 16;

struct TextLoss {
  double mean = 0;             // nats a token
  std::int64_t measured = 0;   // sequences
  std::int64_t sequences = 0;  // that the text holds
};

// The mean loss over `text` in sequences of `length` tokens, one after another; nothing when it
// holds none, or when the model's positions end before.
std::optional<TextLoss> loss_over(CausalModel& model, Ids text, std::int64_t length);

// How text is continued.
struct TextSampling {
  std::int64_t tokens = 200;
  double temperature = 0.8;   // 0: always the likeliest token
  std::int64_t context = 64;  // how many of the last tokens the model sees at most
  std::uint64_t seed = 0;
};

// The tokens after `prompt`, which is not empty. The model keeps the keys and values of what it has
// seen; where that is a whole context, it begins anew with the second half, whose positions are
// others then. So each token costs as much as there are tokens in a context.
std::vector<std::int64_t> continued(CausalModel& model, Ids prompt, const TextSampling& sampling);

}  // namespace heed::cli
