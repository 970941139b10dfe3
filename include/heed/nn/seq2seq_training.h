/// Batches of sequences of different lengths, and training steps on them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/random.h"
#include "heed/nn/optimizer.h"
#include "heed/nn/seq2seq.h"

namespace heed { inline namespace v0 { namespace nn {

/// A source and its target as token ids, without begin and end tokens.
struct SequencePair {
  std::vector<std::int64_t> source;
  std::vector<std::int64_t> target;
};

/// A batch of pairs, padded with kPadId.
struct SequenceBatch {
  Tensor<std::int64_t> src;               ///< [batch, src_len]
  std::vector<std::int64_t> src_lengths;  ///< of each source
  Tensor<std::int64_t> tgt_in;            ///< [batch, tgt_len]: kBosId, then the target
  Tensor<std::int64_t> tgt_out;           ///< [batch, tgt_len]: the target, then kEosId
  std::int64_t num_targets = 0;           ///< tokens that are not padding, kEosId included
};

/// Makes a batch. @throws InvalidArgument when there are no pairs, or a source is empty.
HEED_API SequenceBatch make_batch(std::span<const SequencePair> pairs);

/// The indices of all pairs in batches of similar lengths, so that there is little padding:
/// shuffled, sorted by length within every 32 batches, and shuffled batch by batch. Draws from
/// `random`.
/// @throws InvalidArgument when batch_size is not positive.
HEED_API std::vector<std::vector<std::int64_t>> shuffled_batches(
    std::span<const SequencePair> pairs, std::int64_t batch_size,
    TorchGenerator& random = default_generator());

/// The mean cross entropy of the targets that are not padding, each predicted from the true tokens
/// before it (teacher forcing).
template <class T>
HEED_API Variable<T> seq2seq_loss(Seq2Seq<T>& model, const SequenceBatch& batch);

/// The result of a training step.
struct Seq2SeqStep {
  double loss = 0;
  double grad_norm = 0;  ///< before clipping
};

/// Computes seq2seq_loss, clips its gradients to max_grad_norm, and makes a step of the optimiser.
/// @throws InvalidArgument when the loss is not finite; nothing has changed then.
template <class T>
HEED_API Seq2SeqStep train_step(Seq2Seq<T>& model, Optimizer<T>& optimizer,
                                const SequenceBatch& batch, double max_grad_norm = 1);

}}}  // namespace heed::v0::nn
