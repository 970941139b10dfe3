/// Batches of sequences of different lengths, and a step of training on one.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/random.h"
#include "heed/nn/optimizer.h"
#include "heed/nn/seq2seq.h"

namespace heed { inline namespace v0 { namespace nn {

/// A source and its target as token ids, without begin and end.
struct SequencePair {
  std::vector<std::int64_t> source;
  std::vector<std::int64_t> target;
};

/// Pairs side by side, filled up with kPadId.
struct SequenceBatch {
  Tensor<std::int64_t> src;               ///< [batch, src_len]
  std::vector<std::int64_t> src_lengths;  ///< of each source
  Tensor<std::int64_t> tgt_in;            ///< [batch, tgt_len]: kBosId, then the target
  Tensor<std::int64_t> tgt_out;           ///< [batch, tgt_len]: the target, then kEosId
  std::int64_t num_targets = 0;           ///< that are not padding, kEosId included
};

/// @throws InvalidArgument when there are no pairs, or a source is empty.
HEED_API SequenceBatch make_batch(std::span<const SequencePair> pairs);

/// All pairs in batches of about equal lengths, so that little is padding: shuffled, sorted by
/// length within every 32 batches, and shuffled batch by batch. Draws from `random`.
/// @throws InvalidArgument when batch_size is not positive.
HEED_API std::vector<std::vector<std::int64_t>> shuffled_batches(
    std::span<const SequencePair> pairs, std::int64_t batch_size,
    TorchGenerator& random = default_generator());

/// The mean cross entropy of the targets that are not padding, each predicted from the true tokens
/// before it (teacher forcing).
template <class T>
HEED_API Variable<T> seq2seq_loss(Seq2Seq<T>& model, const SequenceBatch& batch);

/// What a step did.
struct Seq2SeqStep {
  double loss = 0;
  double grad_norm = 0;  ///< before clipping
};

/// seq2seq_loss, its gradients clipped to max_grad_norm, and a step of the optimiser.
/// @throws InvalidArgument when the loss is not finite; nothing has changed then.
template <class T>
HEED_API Seq2SeqStep train_step(Seq2Seq<T>& model, Optimizer<T>& optimizer,
                                const SequenceBatch& batch, double max_grad_norm = 1);

}}}  // namespace heed::v0::nn
