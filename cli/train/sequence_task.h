// What the tasks of sequences have in common: batches of tokens, the loss of predicting some of
// them, and how many are predicted right.
#pragma once

#include <cstdint>

#include "heed/nn/variable.h"
#include "heed/tensor.h"
#include "train/causal_model.h"

namespace heed::cli {

struct SequenceBatch {
  Tensor<std::int64_t> inputs;   // [batch, length]
  Tensor<std::int64_t> targets;  // what follows each token; kIgnoreIndex: not to be predicted
};

// The mean loss in nats over what is to be predicted.
nn::Variable<> sequence_loss(CausalModel& model, const SequenceBatch& batch);

// Each token is predicted from the true ones before it; in a sequence where all are right, these
// are the predicted ones.
struct SequenceScore {
  double exact_match = 0;  // the share of the sequences without a mistake
  double accuracy = 0;     // the share of the predictions that are right
};

SequenceScore sequence_score(CausalModel& model, const SequenceBatch& batch);

}  // namespace heed::cli
