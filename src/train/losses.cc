#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "distributed/agreement.h"
#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/nn/context_parallel.h"
#include "heed/nn/ops.h"
#include "heed/nn/tape.h"
#include "heed/tasks/token_batch.h"
#include "heed/train/text_loss.h"
#include "heed/train/token_loss.h"

namespace heed { inline namespace v0 { namespace train {

nn::Variable<> token_loss(models::CausalTransformer& model, const tasks::TokenBatch& batch) {
  return nn::cross_entropy(model.forward(batch.inputs), TensorView(batch.targets.view()));
}

StepLoss token_loss(models::CausalTransformer& model, const tasks::TokenBatch& batch,
                    Communicator& ranks) {
  const nn::ContextParallel divided(ranks, batch.inputs.extent(1));
  const Tensor<std::int64_t> targets = divided.own(batch.targets);
  const nn::Variable<> logits = model.forward(divided.own(batch.inputs));
  const std::int64_t items =
      targets.num_elements() -
      std::count(targets.data(), targets.data() + targets.num_elements(), nn::kIgnoreIndex);
  if (items == 0) return {0 * nn::sum(logits), 0};
  return {nn::cross_entropy(logits, TensorView(targets.view())), items};
}

TokenScore token_score(models::CausalTransformer& model, const tasks::TokenBatch& batch) {
  const nn::NoGrad no_grad;
  model.eval();
  const nn::Variable<> logits = model.forward(batch.inputs);
  const std::int64_t count = batch.inputs.extent(0);
  std::int64_t exact = 0;
  std::int64_t right = 0;
  std::int64_t asked = 0;
  for (std::int64_t row = 0; row < count; ++row) {
    std::int64_t wrong_in_row = 0;
    for (std::int64_t i = 0; i < batch.inputs.extent(1); ++i) {
      const std::int64_t target = batch.targets(row, i);
      if (target == nn::kIgnoreIndex) continue;
      const auto scores = logits.value().select(0, row).select(0, i).elements();
      const auto likeliest = std::max_element(scores.begin(), scores.end()) - scores.begin();
      ++asked;
      right += likeliest == target ? 1 : 0;
      wrong_in_row += likeliest == target ? 0 : 1;
    }
    exact += wrong_in_row == 0 ? 1 : 0;
  }
  return {static_cast<double>(exact) / static_cast<double>(count),
          static_cast<double>(right) / static_cast<double>(asked)};
}

namespace {

// The sequences of `length` tokens at the given places, each with its next tokens.
tasks::TokenBatch batch_at(Ids text, std::span<const std::int64_t> places, std::int64_t length) {
  const Shape shape{static_cast<std::int64_t>(places.size()), length};
  tasks::TokenBatch batch{Tensor<std::int64_t>(shape), Tensor<std::int64_t>(shape)};
  std::int64_t* input = batch.inputs.data();
  std::int64_t* target = batch.targets.data();
  for (const std::int64_t place : places) {
    const auto* const begin = text.data() + place;
    input = std::copy_n(begin, length, input);
    target = std::copy_n(begin + 1, length, target);
  }
  return batch;
}

Tensor<std::int64_t> random_places(Ids text, std::int64_t batch, std::int64_t length) {
  const auto last = static_cast<std::int64_t>(text.size()) - length;
  return default_generator().randint(0, last, {batch});
}

// Implements loss_over() with a function for the loss of single sequences.
template <class LossOf>
std::optional<TextLoss> mean_over(models::CausalTransformer& model, Ids text, std::int64_t length,
                                  const LossOf& loss_of) {
  const std::int64_t count = (static_cast<std::int64_t>(text.size()) - 1) / length;
  if (count < 1 || length > model.max_length()) return std::nullopt;
  const nn::NoGrad no_grad;
  model.eval();
  const std::int64_t measured =
      std::min(count, std::max<std::int64_t>(kMaxMeasuredTokens / length, 1));
  double sum = 0;
  for (std::int64_t i = 0; i < measured; ++i) {
    const std::int64_t place = i * count / measured * length;
    sum += loss_of(batch_at(text, {&place, 1}, length));
  }
  return TextLoss{sum / static_cast<double>(measured), measured, count};
}

}  // namespace

HeldOutText::HeldOutText(const text::Characters& vocabulary, std::string_view text,
                         std::size_t parts)
    : characters(vocabulary),
      ids(vocabulary.short_ids(text)),
      num_learned(ids.size() - ids.size() / parts) {}

nn::Variable<> random_batch_loss(models::CausalTransformer& model, Ids text, std::int64_t batch,
                                 std::int64_t length) {
  return random_batch_loss(model, text, batch, length, {0, batch});
}

nn::Variable<> random_batch_loss(models::CausalTransformer& model, Ids text, std::int64_t batch,
                                 std::int64_t length, const BatchShare& share) {
  const auto places = random_places(text, batch, length);
  if (share.count == 0) return {};
  const auto own = places.elements().subspan(static_cast<std::size_t>(share.first),
                                             static_cast<std::size_t>(share.count));
  return token_loss(model, batch_at(text, own, length));
}

StepLoss random_batch_loss(models::CausalTransformer& model, Ids text, std::int64_t batch,
                           std::int64_t length, Communicator& ranks) {
  const auto places = random_places(text, batch, length);
  return token_loss(model, batch_at(text, places.elements(), length), ranks);
}

std::optional<TextLoss> loss_over(models::CausalTransformer& model, Ids text, std::int64_t length) {
  return mean_over(model, text, length, [&](const tasks::TokenBatch& batch) {
    return static_cast<double>(token_loss(model, batch).item());
  });
}

std::optional<TextLoss> loss_over(models::CausalTransformer& model, Ids text, std::int64_t length,
                                  Communicator& ranks) {
  std::optional<TextLoss> loss;
  run_on_all(ranks, [&] {
    loss = mean_over(model, text, length, [&](const tasks::TokenBatch& batch) {
      const StepLoss own = token_loss(model, batch, ranks);
      return static_cast<double>(own.loss.item()) * static_cast<double>(own.items) /
             static_cast<double>(length);
    });
  });
  if (!loss) return loss;
  const std::vector<double> parts =
      distributed::gather_all(ranks, std::span<const double>(&loss->mean, 1));
  loss->mean = std::accumulate(parts.begin(), parts.end(), 0.0);
  return loss;
}

std::int64_t MeasuredBlocks::count(Ids text) const {
  return (static_cast<std::int64_t>(text.size()) - 1 - (longest - block)) / block;
}

std::int64_t MeasuredBlocks::measured(Ids text) const {
  return std::min(count(text), std::max<std::int64_t>(kMaxMeasuredTokens / longest, 1));
}

std::optional<double> loss_of_blocks(models::CausalTransformer& model, Ids text,
                                     const MeasuredBlocks& blocks, std::int64_t length) {
  if (length > model.max_length()) return std::nullopt;
  const nn::NoGrad no_grad;
  model.eval();
  const std::int64_t count = blocks.measured(text);
  if (count < 1) {
    throw InvalidArgument(
        fmt::format("loss_of_blocks: the text has {} tokens, expected at least {}: one block "
                    "behind the longest sequence",
                    text.size(), blocks.longest + 1));
  }
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t block = i * blocks.count(text) / count;
    const std::int64_t place = blocks.longest + block * blocks.block - length;
    tasks::TokenBatch batch = batch_at(text, {&place, 1}, length);
    std::fill_n(batch.targets.data(), length - blocks.block, nn::kIgnoreIndex);
    sum += static_cast<double>(token_loss(model, batch).item());
  }
  return sum / static_cast<double>(count);
}

}}}  // namespace heed::v0::train
