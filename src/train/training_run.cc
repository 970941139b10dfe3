#include "heed/train/training_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "heed/core/error.h"
#include "heed/io/safetensors.h"
#include "heed/nn/optimizer.h"
#include "heed/nn/state_file.h"
#include "io/folder.h"

namespace heed { inline namespace v0 { namespace train {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSettingsNote = "settings";
constexpr const char* kMemoryNote = "memory";

nn::TrainerOptions trainer_options(const TrainingTask& task, const RunFolder& folder) {
  nn::TrainerOptions options{.schedule = learning_schedule(task.training)};
  if (!folder.path.empty()) options.checkpoint = folder.checkpoint();
  options.save_every = task.training.save_every;
  options.notes[kSettingsNote] = task.settings;
  options.ranks = task.ranks;
  options.is_context_parallel = task.is_context_parallel;
  return options;
}

bool is_over(const TrainingTask& task) {
  return task.between != nullptr && task.between->is_over();
}

void remember(const TrainingTask& task, nn::Trainer<>& trainer) {
  if (task.between != nullptr) trainer.set_note(kMemoryNote, task.between->memory());
}

void recall(const TrainingTask& task, const RunFolder& folder) {
  if (task.between == nullptr) return;
  task.between->recall(read_safetensors(folder.checkpoint()).metadata[kMemoryNote]);
}

bool run_steps(const TrainingTask& task, nn::Trainer<>& trainer, RunObserver& observer) {
  const auto loss = [&] {
    StepLoss step = task.loss(trainer.step());
    return nn::BatchLoss<float>(std::move(step.loss), static_cast<double>(step.items));
  };
  return trainer.run(loss, [&](const nn::TrainingStep& done) {
    observer.on_step(done, std::llround(done.weight));
    if (task.between != nullptr) task.between->after_step(done, observer);
    remember(task, trainer);
    return !observer.wants_end() && !is_over(task);
  });
}

void check_task(const TrainingTask& task) {
  if (task.ranks == nullptr || task.between == nullptr) return;
  throw InvalidArgument(
      "run_training: the task remembers something between steps, expected none that does with "
      "ranks");
}

void save_model(const TrainingTask& task, const RunFolder& folder) {
  if (folder.path.empty() || task.between != nullptr) return;
  const auto save = [&] {
    nn::save(folder.model(), task.model, {{kSettingsNote, task.settings}, {"format", "pt"}});
  };
  if (task.ranks == nullptr) return save();
  run_on_all(*task.ranks, [&] {
    if (task.ranks->rank() == 0) save();
  });
}

}  // namespace

BatchShare share_of_batch(std::int64_t batch, const Communicator* ranks) {
  if (ranks == nullptr) return {0, batch};
  const std::int64_t each = batch / ranks->size();
  const std::int64_t with_more = batch % ranks->size();
  const std::int64_t rank = ranks->rank();
  return {rank * each + std::min(rank, with_more), each + (rank < with_more ? 1 : 0)};
}

RunObserver::~RunObserver() = default;
void RunObserver::on_begin(std::int64_t, std::int64_t, const std::string&) {}
void RunObserver::on_step(const nn::TrainingStep&, std::int64_t) {}
void RunObserver::say(const std::string&) {}

BetweenSteps::~BetweenSteps() = default;

fs::path RunFolder::checkpoint() const { return path / "checkpoint.safetensors"; }
fs::path RunFolder::model() const { return path / "model.safetensors"; }

RunFolder new_run(const fs::path& path) {
  RunFolder folder{path};
  io::make_folder(path);
  if (fs::exists(folder.checkpoint())) {
    throw IoError(fmt::format("'{}' holds a run already; --resume goes on with it", path.string()));
  }
  io::refuse_existing(path, {folder.model().filename().string()});
  return folder;
}

RunOutcome run_training(const TrainingTask& task, const RunFolder& folder) {
  RunObserver observer;
  return run_training(task, folder, observer);
}

RunOutcome run_training(const TrainingTask& task, const RunFolder& folder, RunObserver& observer) {
  check_task(task);
  nn::AdamW<> optimizer(task.model.parameters(), task.training.learning_rate);
  nn::Trainer<> trainer(task.model, optimizer, trainer_options(task, folder));
  if (folder.is_resumed) {
    trainer.resume();
    recall(task, folder);
  } else {
    remember(task, trainer);
    trainer.save();
  }
  bool is_finished = is_over(task);
  if (!is_finished) {
    observer.on_begin(trainer.step(), task.training.steps, task.unit);
    is_finished = run_steps(task, trainer, observer) || is_over(task);
  }
  save_model(task, folder);
  return {is_finished, trainer.step()};
}

}}}  // namespace heed::v0::train
