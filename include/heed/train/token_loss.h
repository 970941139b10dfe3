/// The loss of a causal model on sequences of tokens, and how many it predicts right.
#pragma once

#include "heed/core/config.h"
#include "heed/distributed/communicator.h"
#include "heed/models/causal_transformer.h"
#include "heed/nn/variable.h"
#include "heed/tasks/token_batch.h"
#include "heed/train/training_run.h"

/// How models are trained, and how well they do.
namespace heed { inline namespace v0 { namespace train {

/// The mean cross entropy in nats over what is to be predicted. One element.
/// @throws InvalidArgument when a token is not in the vocabulary, or sequences are longer than the
/// model's positions reach.
HEED_API nn::Variable<> token_loss(models::CausalTransformer& model,
                                   const tasks::TokenBatch& batch);

/// The same of this rank's tokens of each sequence, as nn::ContextParallel divides them: a mean
/// over its targets, or 0, from all of its tokens, with 0 items where it has none. All ranks call
/// it with the same batch, within run_on_all(), and call backward() all or none.
HEED_API StepLoss token_loss(models::CausalTransformer& model, const tasks::TokenBatch& batch,
                             Communicator& ranks);

/// Each token is predicted from the true ones before it; in a sequence where all are right, these
/// are the predicted ones.
struct TokenScore {
  double exact_match = 0;  ///< the share of the sequences without a mistake
  double accuracy = 0;     ///< the share of the predictions that are right
};

/// Of the likeliest tokens. The model is then in evaluation. @throws InvalidArgument as
/// token_loss().
HEED_API TokenScore token_score(models::CausalTransformer& model, const tasks::TokenBatch& batch);

}}}  // namespace heed::v0::train
