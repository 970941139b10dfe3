#include "heed/nn/seq2seq_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/float_environment.h"
#include "heed/nn/special_tokens.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

// The number of batches whose pairs are sorted together by length.
constexpr std::int64_t kSortedBatches = 32;

std::int64_t length_of(const std::vector<std::int64_t>& ids) {
  return static_cast<std::int64_t>(ids.size());
}

std::vector<std::int64_t> shuffled(std::int64_t count, TorchGenerator& random) {
  const auto order = random.randperm(count);
  return {order.elements().begin(), order.elements().end()};
}

}  // namespace

SequenceBatch make_batch(std::span<const SequencePair> pairs) {
  if (pairs.empty()) throw InvalidArgument("make_batch: pairs is empty, expected at least one");
  std::int64_t src_len = 0;
  std::int64_t tgt_len = 0;
  for (const auto& pair : pairs) {
    if (pair.source.empty()) {
      throw InvalidArgument("make_batch: a source is empty, expected at least one token");
    }
    src_len = std::max(src_len, length_of(pair.source));
    tgt_len = std::max(tgt_len, length_of(pair.target) + 1);
  }
  const auto batch = static_cast<std::int64_t>(pairs.size());
  static_assert(kPadId == 0, "a new tensor is padding");
  SequenceBatch result{Tensor<std::int64_t>({batch, src_len}),
                       {},
                       Tensor<std::int64_t>({batch, tgt_len}),
                       Tensor<std::int64_t>({batch, tgt_len})};
  for (std::int64_t row = 0; row < batch; ++row) {
    const auto& [source, target] = pairs[static_cast<std::size_t>(row)];
    std::copy(source.begin(), source.end(), result.src.data() + row * src_len);
    std::int64_t* const in = result.tgt_in.data() + row * tgt_len;
    std::int64_t* const out = result.tgt_out.data() + row * tgt_len;
    *in = kBosId;
    std::copy(target.begin(), target.end(), in + 1);
    *std::copy(target.begin(), target.end(), out) = kEosId;
    result.src_lengths.push_back(length_of(source));
    result.num_targets += length_of(target) + 1;
  }
  return result;
}

std::vector<std::vector<std::int64_t>> shuffled_batches(std::span<const SequencePair> pairs,
                                                        std::int64_t batch_size,
                                                        TorchGenerator& random) {
  if (batch_size < 1) {
    throw InvalidArgument(
        fmt::format("shuffled_batches: batch_size is {}, expected at least 1", batch_size));
  }
  const auto count = static_cast<std::int64_t>(pairs.size());
  std::vector<std::int64_t> order = shuffled(count, random);
  const auto at = [&order](std::int64_t index) { return order.begin() + index; };
  const auto lengths = [&pairs](std::int64_t index) {
    const auto& pair = pairs[static_cast<std::size_t>(index)];
    return std::pair(pair.source.size(), pair.target.size());
  };
  std::vector<std::vector<std::int64_t>> batches;
  const std::int64_t chunk =
      count / kSortedBatches < batch_size ? count : batch_size * kSortedBatches;
  for (std::int64_t first = 0; first < count; first += chunk) {
    const std::int64_t last = std::min(first + chunk, count);
    std::stable_sort(at(first), at(last),
                     [&](std::int64_t a, std::int64_t b) { return lengths(a) < lengths(b); });
    for (std::int64_t begin = first; begin < last; begin += std::min(batch_size, last - begin)) {
      batches.emplace_back(at(begin), at(begin + std::min(batch_size, last - begin)));
    }
  }
  std::vector<std::vector<std::int64_t>> result;
  const auto num_batches = static_cast<std::int64_t>(batches.size());
  for (const std::int64_t index : shuffled(num_batches, random)) {
    result.push_back(std::move(batches[static_cast<std::size_t>(index)]));
  }
  return result;
}

template <class T>
Variable<T> seq2seq_loss(Seq2Seq<T>& model, const SequenceBatch& batch) {
  const FloatEnvironment environment;
  const Variable<T> logits =
      model.forward(batch.src, batch.tgt_in, batch.src_lengths, false).logits;
  return cross_entropy<T>(logits, batch.tgt_out, kPadId);
}

template <class T>
Seq2SeqStep train_step(Seq2Seq<T>& model, Optimizer<T>& optimizer, const SequenceBatch& batch,
                       double max_grad_norm) {
  const FloatEnvironment environment;
  const Variable<T> loss = seq2seq_loss(model, batch);
  Seq2SeqStep step{static_cast<double>(loss.item())};
  if (!std::isfinite(step.loss)) {
    // The sign of a NaN depends on the processor.
    throw InvalidArgument(fmt::format(
        "train_step: the loss is {}: a smaller learning rate may help", std::abs(step.loss)));
  }
  optimizer.zero_grad();
  loss.backward();
  step.grad_norm = clip_grad_norm(model.parameters(), max_grad_norm);
  optimizer.step();
  return step;
}

template HEED_API Variable<float> seq2seq_loss(Seq2Seq<float>&, const SequenceBatch&);
template HEED_API Variable<double> seq2seq_loss(Seq2Seq<double>&, const SequenceBatch&);
template HEED_API Seq2SeqStep train_step(Seq2Seq<float>&, Optimizer<float>&, const SequenceBatch&,
                                         double);
template HEED_API Seq2SeqStep train_step(Seq2Seq<double>&, Optimizer<double>&, const SequenceBatch&,
                                         double);

}}}  // namespace heed::v0::nn
