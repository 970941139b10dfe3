#include "train/language_model.h"

#include <algorithm>
#include <cmath>

#include "heed/nn/ops.h"
#include "heed/nn/search.h"
#include "train/sequence_task.h"
#include "train/text_writer.h"

namespace heed::cli {

namespace {

// Sequences of `length` tokens and the tokens after each, from the given places.
SequenceBatch batch_at(Ids text, std::span<const std::int64_t> places, std::int64_t length) {
  const Shape shape{static_cast<std::int64_t>(places.size()), length};
  SequenceBatch batch{Tensor<std::int64_t>(shape), Tensor<std::int64_t>(shape)};
  std::int64_t* input = batch.inputs.data();
  std::int64_t* target = batch.targets.data();
  for (const std::int64_t place : places) {
    const auto* const begin = text.data() + place;
    input = std::copy_n(begin, length, input);
    target = std::copy_n(begin + 1, length, target);
  }
  return batch;
}

// The token that follows, drawn with probabilities softmax(logits / temperature).
std::int64_t draw(std::span<const float> logits, double temperature, TorchGenerator& random) {
  const auto largest = std::max_element(logits.begin(), logits.end());
  if (temperature == 0) return largest - logits.begin();
  std::vector<double> sums;
  double sum = 0;
  for (const float logit : logits) {
    sum += std::exp((static_cast<double>(logit) - static_cast<double>(*largest)) / temperature);
    sums.push_back(sum);
  }
  const double point = random.rand<double>({1})(0) * sum;
  const auto chosen = std::upper_bound(sums.begin(), sums.end() - 1, point);
  return chosen - sums.begin();
}

}  // namespace

nn::Variable<> random_batch_loss(CausalModel& model, Ids text, std::int64_t batch,
                                 std::int64_t length) {
  const auto last = static_cast<std::int64_t>(text.size()) - length;
  const auto places = default_generator().randint(0, last, {batch});
  return sequence_loss(model, batch_at(text, places.elements(), length));
}

std::optional<TextLoss> loss_over(CausalModel& model, Ids text, std::int64_t length) {
  const std::int64_t count = (static_cast<std::int64_t>(text.size()) - 1) / length;
  if (count < 1 || length > model.max_length()) return std::nullopt;
  const nn::NoGrad no_grad;
  model.eval();
  const std::int64_t measured =
      std::min(count, std::max<std::int64_t>(kMaxMeasuredTokens / length, 1));
  double sum = 0;
  for (std::int64_t i = 0; i < measured; ++i) {
    const std::int64_t place = i * count / measured * length;
    sum += static_cast<double>(sequence_loss(model, batch_at(text, {&place, 1}, length)).item());
  }
  return TextLoss{sum / static_cast<double>(measured), measured, count};
}

std::int64_t MeasuredBlocks::count(Ids text) const {
  return (static_cast<std::int64_t>(text.size()) - 1 - (longest - block)) / block;
}

std::int64_t MeasuredBlocks::measured(Ids text) const {
  return std::min(count(text), std::max<std::int64_t>(kMaxMeasuredTokens / longest, 1));
}

std::optional<double> loss_of_blocks(CausalModel& model, Ids text, const MeasuredBlocks& blocks,
                                     std::int64_t length) {
  if (length > model.max_length()) return std::nullopt;
  const nn::NoGrad no_grad;
  model.eval();
  const std::int64_t count = blocks.measured(text);
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t block = i * blocks.count(text) / count;
    const std::int64_t place = blocks.longest + block * blocks.block - length;
    SequenceBatch batch = batch_at(text, {&place, 1}, length);
    std::fill_n(batch.targets.data(), length - blocks.block, nn::kIgnoreIndex);
    sum += static_cast<double>(sequence_loss(model, batch).item());
  }
  return sum / static_cast<double>(count);
}

std::vector<std::int64_t> continued(CausalModel& model, Ids prompt, const TextSampling& sampling) {
  TorchGenerator random(sampling.seed);
  TextWriter writer(model, prompt, sampling.context);
  std::vector<std::int64_t> ids;
  nn::NextToken last;
  while (static_cast<std::int64_t>(ids.size()) < sampling.tokens) {
    const auto [logits, weights] = ids.empty() ? writer.begin() : writer.go_on({&last, 1});
    last.token = draw(logits.value().elements(), sampling.temperature, random);
    ids.push_back(last.token);
  }
  return ids;
}

std::vector<std::int64_t> likeliest_text(CausalModel& model, Ids prompt, const TextBeam& search) {
  TextWriter writer(model, prompt, search.context);
  return nn::beam_search(writer, {.beam = search.beam, .max_len = search.tokens}).front().tokens;
}

}  // namespace heed::cli
