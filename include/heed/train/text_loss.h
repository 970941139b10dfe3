/// The loss of a causal model on a text: on random batches, and over all of it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/config.h"
#include "heed/distributed/communicator.h"
#include "heed/models/causal_transformer.h"
#include "heed/nn/variable.h"
#include "heed/text/characters.h"
#include "heed/train/training_run.h"

namespace heed { inline namespace v0 { namespace train {

/// The tokens of a text.
using Ids = std::span<const std::int32_t>;

/// A text as characters, whose last part is held out from training.
struct HEED_API HeldOutText {
  /// @param parts the held-out part is 1 / parts of the text
  /// @throws InvalidArgument when the text is not valid UTF-8.
  explicit HeldOutText(std::string_view text, std::size_t parts = 10)
      : HeldOutText(text::Characters(text), text, parts) {}
  /// With the ids of a vocabulary that has all characters of the text. @throws InvalidArgument
  /// naming a character that it does not have.
  HeldOutText(const text::Characters& vocabulary, std::string_view text, std::size_t parts = 10);

  text::Characters characters;
  std::vector<std::int32_t> ids;
  std::size_t num_learned;  ///< ids.size() less ids.size() / parts, rounded down

  Ids learned() const { return Ids(ids).first(num_learned); }
  Ids held_out() const { return Ids(ids).subspan(num_learned); }
};

/// The mean loss in nats of predicting each token of `batch` sequences of `length` tokens at random
/// positions of `text`, drawn from default_generator().
/// @throws InvalidArgument when the text has no more than `length` tokens, and as token_loss().
HEED_API nn::Variable<> random_batch_loss(models::CausalTransformer& model, Ids text,
                                          std::int64_t batch, std::int64_t length);
/// The loss over a rank's share of the sequences of this batch; undefined where it has none. It
/// draws the same numbers for any share.
HEED_API nn::Variable<> random_batch_loss(models::CausalTransformer& model, Ids text,
                                          std::int64_t batch, std::int64_t length,
                                          const BatchShare& share);

/// The loss over this rank's tokens of all sequences of this batch: see token_loss(). It draws the
/// same numbers.
HEED_API StepLoss random_batch_loss(models::CausalTransformer& model, Ids text, std::int64_t batch,
                                    std::int64_t length, Communicator& ranks);

/// The most tokens of a text that are measured, in sequences spread evenly over it, because
/// measuring all of a long text takes longer than the training.
constexpr std::int64_t kMaxMeasuredTokens = std::int64_t{1} << 16;

/// A mean loss over sequences of a text.
struct TextLoss {
  double mean = 0;             ///< nats per token
  std::int64_t measured = 0;   ///< the number of measured sequences
  std::int64_t sequences = 0;  ///< the number of sequences in the text
};

/// The mean loss over `text` in consecutive sequences of `length` tokens; empty when the text or
/// the model's positions are shorter. Leaves the model in evaluation mode.
HEED_API std::optional<TextLoss> loss_over(models::CausalTransformer& model, Ids text,
                                           std::int64_t length);

/// loss_over() on all ranks, which call it with the same model and text; each computes with its
/// tokens of each sequence: see token_loss().
HEED_API std::optional<TextLoss> loss_over(models::CausalTransformer& model, Ids text,
                                           std::int64_t length, Communicator& ranks);

/// Blocks of tokens whose loss can be measured in sequences of any length, as the last tokens of
/// each sequence.
struct HEED_API MeasuredBlocks {
  std::int64_t longest;  ///< the longest sequence that will be measured
  std::int64_t block;    ///< tokens in a block, at most the shortest length

  /// The number of blocks of a text that have enough tokens before them; not positive: none.
  std::int64_t count(Ids text) const;
  /// The number of blocks that are measured, spread evenly over the text.
  std::int64_t measured(Ids text) const;
};

/// The mean loss in nats of predicting the tokens of the measured blocks, each at the end of a
/// sequence of `length` tokens. The length changes only how many earlier tokens are seen, length −
/// block and more. Empty when the model's positions are shorter. Leaves the model in
/// evaluation mode.
/// @throws InvalidArgument when the text does not contain a block.
HEED_API std::optional<double> loss_of_blocks(models::CausalTransformer& model, Ids text,
                                              const MeasuredBlocks& blocks, std::int64_t length);

}}}  // namespace heed::v0::train
