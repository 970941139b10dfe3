// Tasks whose batches are drawn: copying, and recall of values by keys.
#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "heed/core/error.h"
#include "heed/nn/ops.h"
#include "heed/tasks/copy_task.h"
#include "heed/tasks/recall_task.h"

namespace heed { inline namespace v0 { namespace tasks {

namespace {

// Throws InvalidArgument unless task.`name` is at least `least` and, if there is a bound, at most
// `most`.
void check_setting(const char* function, const char* name, std::int64_t found, std::int64_t least,
                   std::int64_t most = INT64_MAX) {
  if (found >= least && found <= most) return;
  throw InvalidArgument(most == INT64_MAX ? fmt::format("{}: task.{} is {}, expected at least {}",
                                                        function, name, found, least)
                                          : fmt::format("{}: task.{} is {}, expected {} to {}",
                                                        function, name, found, least, most));
}

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

namespace {

// The first `count` numbers of a uniformly random permutation of 0, …, n − 1.
std::vector<std::int64_t> draw_different(std::int64_t n, std::int64_t count,
                                         TorchGenerator& random) {
  std::vector<std::int64_t> numbers;
  for (std::int64_t i = 0; i < n; ++i) numbers.push_back(i);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t other = random.randint(i, n, {1})(0);
    std::swap(numbers[static_cast<std::size_t>(i)], numbers[static_cast<std::size_t>(other)]);
  }
  numbers.resize(static_cast<std::size_t>(count));
  return numbers;
}

void check(const RecallTask& task) {
  check_setting("draw_batch", "keys", task.keys, 1);
  check_setting("draw_batch", "values", task.values, 1);
  check_setting("draw_batch", "pairs", task.pairs, 1, task.keys);
  check_setting("draw_batch", "questions", task.questions, 0, task.pairs);
  check_setting("draw_batch", "lead", task.lead, 0);
}

}  // namespace

TokenBatch draw_batch(const RecallTask& task, std::int64_t batch, TorchGenerator& random) {
  check(task);
  const Shape shape{batch, task.sequence_length()};
  TokenBatch result{Tensor<std::int64_t>(shape), Tensor<std::int64_t>(shape)};
  std::fill_n(result.inputs.data(), result.inputs.num_elements(), task.blank());
  std::fill_n(result.targets.data(), result.targets.num_elements(), nn::kIgnoreIndex);
  for (std::int64_t row = 0; row < batch; ++row) {
    const auto keys = draw_different(task.keys, task.pairs, random);
    const auto values = random.randint(0, task.values, {task.pairs});
    std::int64_t* const input = result.inputs.view().select(0, row).data() + task.lead;
    for (std::int64_t i = 0; i < task.pairs; ++i) {
      input[i] = task.pair(keys[static_cast<std::size_t>(i)], values(i));
    }
    const auto asked = draw_different(task.pairs, task.questions, random);
    std::int64_t* const target = result.targets.view().select(0, row).data() + task.lead;
    for (std::int64_t i = 0; i < task.questions; ++i) {
      const std::int64_t pair = asked[static_cast<std::size_t>(i)];
      input[task.pairs + i] = task.question(keys[static_cast<std::size_t>(pair)]);
      target[task.pairs + i] = task.answer(values(pair));
    }
  }
  return result;
}

}}}  // namespace heed::v0::tasks
