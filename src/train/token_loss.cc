#include "heed/train/token_loss.h"

#include <algorithm>

#include "heed/nn/context_parallel.h"
#include "heed/nn/ops.h"
#include "heed/nn/tape.h"

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

}}}  // namespace heed::v0::train
