#include "heed/tasks/copy_task.h"

#include <algorithm>

#include "heed/nn/ops.h"
#include "tasks/check_setting.h"

namespace heed { inline namespace v0 { namespace tasks {

namespace {

void check(const CopyTask& task) {
  check_setting("draw_batch", "length", task.length, 1);
  check_setting("draw_batch", "symbols", task.symbols, 1);
  check_setting("draw_batch", "lead", task.lead, 0);
  check_setting("draw_batch", "gap", task.gap, 0);
}

}  // namespace

TokenBatch draw_batch(const CopyTask& task, std::int64_t batch, TorchGenerator& random) {
  check(task);
  const Tensor<std::int64_t> symbols = random.randint(0, task.symbols, {batch, task.length});
  const Shape shape{batch, task.sequence_length()};
  TokenBatch result{Tensor<std::int64_t>(shape), Tensor<std::int64_t>(shape)};
  std::fill_n(result.inputs.data(), result.inputs.num_elements(), task.blank());
  std::fill_n(result.targets.data(), result.targets.num_elements(), nn::kIgnoreIndex);
  for (std::int64_t row = 0; row < batch; ++row) {
    const auto* const drawn = symbols.view().select(0, row).data();
    std::int64_t* const input = result.inputs.view().select(0, row).data();
    std::copy_n(drawn, task.length, input + task.lead);
    input[task.question()] = task.separator();
    std::copy_n(drawn, task.length - 1, input + task.question() + 1);
    std::int64_t* const target = result.targets.view().select(0, row).data();
    std::copy_n(drawn, task.length, target + task.question());
  }
  return result;
}

}}}  // namespace heed::v0::tasks
