/// The loss and accuracy of a causal model on sequences of tokens.
#pragma once

#include "heed/core/config.h"
#include "heed/distributed/communicator.h"
#include "heed/models/causal_transformer.h"
#include "heed/nn/variable.h"
#include "heed/tasks/token_batch.h"
#include "heed/train/training_run.h"

/// Training of models and their scores.
namespace heed { inline namespace v0 { namespace train {

/// The mean cross entropy in nats over the tokens that have a target. One element.
/// @throws InvalidArgument when a token is not in the vocabulary, or sequences are longer than the
/// model's positions.
HEED_API nn::Variable<> token_loss(models::CausalTransformer& model,
                                   const tasks::TokenBatch& batch);

/// token_loss() of this rank's tokens of each sequence, divided as by nn::ContextParallel: a mean
/// over its targets, or a 0 that depends on its tokens, with 0 items, where it has none. All ranks
/// call it with the same batch, within run_on_all(), and either all or none of them call
/// backward().
HEED_API StepLoss token_loss(models::CausalTransformer& model, const tasks::TokenBatch& batch,
                             Communicator& ranks);

/// Scores of predictions, each from the true tokens before it; in a sequence without a mistake
/// these are the predicted ones.
struct TokenScore {
  double exact_match = 0;  ///< the share of the sequences without a mistake
  double accuracy = 0;     ///< the share of the predictions that are right
};

/// The scores of the most likely tokens. Leaves the model in evaluation mode. @throws
/// InvalidArgument as token_loss().
HEED_API TokenScore token_score(models::CausalTransformer& model, const tasks::TokenBatch& batch);

}}}  // namespace heed::v0::train
