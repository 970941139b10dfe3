/// What a causal model learns from a text: random batches of it, and the loss over all of it.
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

/// A text as its characters, of which the last part is held out: it is not learned from.
struct HEED_API HeldOutText {
  /// @param parts one part of so many is held out
  /// @throws InvalidArgument when the text is not valid UTF-8.
  explicit HeldOutText(std::string_view text, std::size_t parts = 10)
      : HeldOutText(text::Characters(text), text, parts) {}
  /// In the numbers of a vocabulary, which has all of its characters. @throws InvalidArgument
  /// naming a character that is not among them.
  HeldOutText(const text::Characters& vocabulary, std::string_view text, std::size_t parts = 10);

  text::Characters characters;
  std::vector<std::int32_t> ids;
  std::size_t num_learned;  ///< ids.size() less ids.size() / parts, rounded down

  Ids learned() const { return Ids(ids).first(num_learned); }
  Ids held_out() const { return Ids(ids).subspan(num_learned); }
};

/// The mean loss in nats of predicting each token of `batch` sequences of `length` tokens, which
/// start at random places of `text`, drawn from default_generator().
/// @throws InvalidArgument when the text has no more than `length` tokens, and as token_loss().
HEED_API nn::Variable<> random_batch_loss(models::CausalTransformer& model, Ids text,
                                          std::int64_t batch, std::int64_t length);
/// Of those sequences of such a batch that are a rank's share; nothing where it has none. The same
/// numbers are drawn for any share.
HEED_API nn::Variable<> random_batch_loss(models::CausalTransformer& model, Ids text,
                                          std::int64_t batch, std::int64_t length,
                                          const BatchShare& share);

/// Of this rank's tokens of all sequences of such a batch: see token_loss(). The same numbers are
/// drawn.
HEED_API StepLoss random_batch_loss(models::CausalTransformer& model, Ids text, std::int64_t batch,
                                    std::int64_t length, Communicator& ranks);

/// Of a longer text as many are measured, in sequences spread evenly over it: measuring all of a
/// long one takes longer than the training did.
constexpr std::int64_t kMaxMeasuredTokens = std::int64_t{1} << 16;

/// A mean over sequences of a text.
struct TextLoss {
  double mean = 0;             ///< nats a token
  std::int64_t measured = 0;   ///< sequences
  std::int64_t sequences = 0;  ///< that the text holds
};

/// The mean loss over `text` in sequences of `length` tokens, one after another; nothing when it
/// holds none, or when the model's positions end before. The model is then in evaluation.
HEED_API std::optional<TextLoss> loss_over(models::CausalTransformer& model, Ids text,
                                           std::int64_t length);

/// The same on all ranks, which call it with the same model and text, and of which each computes
/// with its tokens of each sequence: see token_loss().
HEED_API std::optional<TextLoss> loss_over(models::CausalTransformer& model, Ids text,
                                           std::int64_t length, Communicator& ranks);

/// Tokens of a text that are predicted in sequences of any length, a block of them at the end of
/// each sequence.
struct HEED_API MeasuredBlocks {
  std::int64_t longest;  ///< of all sequences that are measured
  std::int64_t block;    ///< tokens, at most the shortest length

  /// How many blocks a text holds that have so many tokens before them; not positive: none.
  std::int64_t count(Ids text) const;
  /// How many of them are measured, spread evenly over the text.
  std::int64_t measured(Ids text) const;
};

/// The mean loss in nats of predicting the tokens of the measured blocks, each in a sequence of
/// `length` tokens that ends with it. Lengths differ only in how much of the past is seen, length −
/// block tokens and more. Nothing when the model's positions end before. `text` holds a block. The
/// model is then in evaluation.
HEED_API std::optional<double> loss_of_blocks(models::CausalTransformer& model, Ids text,
                                              const MeasuredBlocks& blocks, std::int64_t length);

}}}  // namespace heed::v0::train
