// The task of `heed train copy`: symbols, a separator, and the same symbols again.
#pragma once

#include <cstdint>

#include "heed/nn/variable.h"
#include "heed/random.h"
#include "train/causal_model.h"

namespace heed::cli {

struct CopyTask {
  std::int64_t length;
  std::int64_t symbols;

  // That of a model with these sizes.
  static CopyTask of(const ModelSettings& sizes) {
    return {sizes.context / 2, sizes.vocab_size - 1};
  }

  std::int64_t separator() const { return symbols; }
  // The last symbol is never read, only predicted.
  std::int64_t sequence_length() const { return 2 * length; }
};

struct CopyBatch {
  Tensor<std::int64_t> inputs;   // [batch, 2 · length]
  Tensor<std::int64_t> targets;  // kIgnoreIndex before the separator: nobody can know the symbols
};

CopyBatch draw_batch(const CopyTask& task, std::int64_t batch, TorchGenerator& random);

nn::Variable<> copy_loss(CausalModel& model, const CopyBatch& batch);

// How well a model repeats. Each symbol is predicted from the true ones before it; in a sequence
// where all are right, these are the predicted ones.
struct CopyScore {
  double exact_match = 0;      // the share of the sequences without a mistake
  double symbol_accuracy = 0;  // the share of the symbols that are right
};

CopyScore copy_score(CausalModel& model, const CopyTask& task, const CopyBatch& batch);

}  // namespace heed::cli
