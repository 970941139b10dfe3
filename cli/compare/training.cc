#include "compare/training.h"

#include <fmt/format.h>

#include <utility>

#include "heed/nn/optimizer.h"
#include "heed/nn/trainer.h"

namespace heed::cli {

void ComparedTraining::train(nn::Module<>& model, const train::TrainingSettings& training,
                             const std::function<train::StepLoss()>& loss) {
  nn::AdamW<> optimizer(model.parameters(), training.learning_rate);
  nn::Trainer<> trainer(model, optimizer, {.schedule = train::learning_schedule(training)});
  std::int64_t items = 0;
  const auto counted_loss = [&] {
    train::StepLoss step = loss();
    items = step.items;
    return std::move(step.loss);
  };
  const bool is_finished = trainer.run(counted_loss, [&](nn::TrainingStep step) {
    step.step = ++done_;
    progress_.on_step(step, items);
    return InterruptGuard::signal() == 0;
  });
  if (is_finished && InterruptGuard::signal() == 0) return;
  throw Interrupted(
      InterruptGuard::signal(),
      fmt::format("interrupted after step {}; a comparison keeps nothing before its end", done_));
}

}  // namespace heed::cli
