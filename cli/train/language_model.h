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

// Tokens of a text that are predicted in sequences of any length, a block of them at the end of
// each sequence.
struct MeasuredBlocks {
  std::int64_t longest;  // of all sequences that are measured
  std::int64_t block;    // tokens, at most the shortest length

  // How many blocks a text holds that have so many tokens before them; not positive: none.
  std::int64_t count(Ids text) const;
  // How many of them are measured, spread evenly over the text.
  std::int64_t measured(Ids text) const;
};

// The mean loss in nats of predicting the tokens of the measured blocks, each in a sequence of
// `length` tokens that ends with it. Lengths differ only in how much of the past is seen, length −
// block tokens and more. Nothing when the model's positions end before. `text` holds a block.
std::optional<double> loss_of_blocks(CausalModel& model, Ids text, const MeasuredBlocks& blocks,
                                     std::int64_t length);

// How text is continued.
struct TextSampling {
  std::int64_t tokens = 200;
  double temperature = 0.8;   // 0: always the likeliest token
  std::int64_t context = 64;  // how many of the last tokens the model sees at most
  std::uint64_t seed = 0;
};

// The tokens after `prompt`, which is not empty, as a TextWriter writes them.
std::vector<std::int64_t> continued(CausalModel& model, Ids prompt, const TextSampling& sampling);

// How the likeliest text is looked for.
struct TextBeam {
  std::int64_t beam = 1;  // hypotheses that are followed at once
  std::int64_t tokens = 200;
  std::int64_t context = 64;
};

// The likeliest tokens after `prompt` that a beam search finds. Its hypotheses share the keys and
// values of what they have in common.
std::vector<std::int64_t> likeliest_text(CausalModel& model, Ids prompt, const TextBeam& search);

}  // namespace heed::cli
