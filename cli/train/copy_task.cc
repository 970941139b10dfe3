#include "train/copy_task.h"

#include <algorithm>

#include "heed/nn/ops.h"
#include "heed/nn/tape.h"

namespace heed::cli {

CopyBatch draw_batch(const CopyTask& task, std::int64_t batch, TorchGenerator& random) {
  const Tensor<std::int64_t> symbols = random.randint(0, task.symbols, {batch, task.length});
  const Shape shape{batch, task.sequence_length()};
  CopyBatch result{Tensor<std::int64_t>(shape), Tensor<std::int64_t>(shape)};
  for (std::int64_t row = 0; row < batch; ++row) {
    const auto* const drawn = symbols.view().select(0, row).data();
    std::int64_t* const input = result.inputs.view().select(0, row).data();
    std::copy_n(drawn, task.length, input);
    input[task.length] = task.separator();
    std::copy_n(drawn, task.length - 1, input + task.length + 1);
    std::int64_t* const target = result.targets.view().select(0, row).data();
    std::fill_n(target, task.length, nn::kIgnoreIndex);
    std::copy_n(drawn, task.length, target + task.length);
  }
  return result;
}

nn::Variable<> copy_loss(CausalModel& model, const CopyBatch& batch) {
  return nn::cross_entropy(model.forward(batch.inputs), TensorView(batch.targets.view()));
}

CopyScore copy_score(CausalModel& model, const CopyTask& task, const CopyBatch& batch) {
  const nn::NoGrad no_grad;
  model.eval();
  const nn::Variable<> logits = model.forward(batch.inputs);
  const std::int64_t count = batch.inputs.extent(0);
  std::int64_t exact = 0;
  std::int64_t right = 0;
  for (std::int64_t row = 0; row < count; ++row) {
    std::int64_t right_in_row = 0;
    for (std::int64_t i = task.length; i < task.sequence_length(); ++i) {
      const auto scores = logits.value().select(0, row).select(0, i).elements();
      const auto likeliest = std::max_element(scores.begin(), scores.end()) - scores.begin();
      right_in_row += likeliest == batch.targets(row, i) ? 1 : 0;
    }
    exact += right_in_row == task.length ? 1 : 0;
    right += right_in_row;
  }
  return {static_cast<double>(exact) / static_cast<double>(count),
          static_cast<double>(right) / static_cast<double>(count * task.length)};
}

}  // namespace heed::cli
