#include "train/session.h"

#include <fmt/format.h>

#include <system_error>

#include "heed/error.h"
#include "heed/nn/optimizer.h"
#include "heed/nn/state_file.h"
#include "heed/nn/trainer.h"
#include "train/interrupt.h"
#include "train/progress.h"
#include "verbs.h"

namespace heed::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSettings = "settings";

// Clipping, warm-up and decay are the same for all tasks: small models are not sensitive to them.
constexpr double kWarmupShare = 0.05;
constexpr double kFloorShare = 0.05;

nn::TrainerOptions trainer_options(const TrainingTask& task, const RunFolder& folder,
                                   const TrainingSettings& training) {
  nn::TrainerOptions options;
  options.schedule.peak = training.learning_rate;
  options.schedule.floor = kFloorShare * training.learning_rate;
  options.schedule.total_steps = training.steps;
  options.schedule.warmup_steps =
      static_cast<std::int64_t>(kWarmupShare * static_cast<double>(training.steps));
  if (!folder.path.empty()) options.checkpoint = folder.checkpoint();
  options.save_every = training.save_every;
  options.notes[kSettings] = task.settings.dump();
  return options;
}

[[noreturn]] void throw_interrupted(const RunFolder& folder, std::int64_t step,
                                    const TrainingTask& task, std::int64_t steps) {
  const auto name = task.settings.at("task").get<std::string>();
  const std::string advice =
      folder.path.empty()
          ? "nothing was saved, for there was no --save"
          : fmt::format("`heed train {} --resume {}` goes on", name, folder.path.string());
  throw Interrupted(InterruptGuard::signal(),
                    fmt::format("interrupted after step {} of {}; {}", step, steps, advice));
}

}  // namespace

void add_training_options(CLI::App& verb, TrainArguments& arguments) {
  TrainingSettings& training = arguments.training;
  verb.add_option("--save", arguments.save,
                  "The folder for checkpoints and the model; made if it is not there")
      ->type_name("DIR");
  CLI::Option* resume =
      verb.add_option("--resume", arguments.resume,
                      "Goes on with the run in this folder, with its settings, to the same result "
                      "as if it had never stopped")
          ->type_name("DIR");
  resume->excludes("--save");
  verb.add_flag("--json", arguments.as_json, "Print the result as one JSON object");
  const auto add = [&](const std::string& name, auto& value, const std::string& text,
                       const std::string& type) {
    exclude_from_resume(verb,
                        verb.add_option(name, value, text)->capture_default_str()->type_name(type));
  };
  add("--steps", training.steps, "How many batches are learned from", "N");
  add("--batch", training.batch, "Sequences in a batch", "N");
  add("--lr", training.learning_rate, "The largest learning rate, after warm-up", "NUMBER");
  add("--seed", training.seed, "Draws parameters and batches", "N");
  add("--save-every", training.save_every, "Steps between checkpoints", "N");
}

void exclude_from_resume(CLI::App& verb, CLI::Option* option) {
  verb.get_option("--resume")->excludes(option);
}

fs::path RunFolder::checkpoint() const { return path / "checkpoint.safetensors"; }
fs::path RunFolder::model() const { return path / "model.safetensors"; }

RunFolder open_run(const TrainArguments& arguments) {
  if (!arguments.resume.empty()) return {arguments.resume, true};
  if (arguments.save.empty()) return {};
  RunFolder folder{arguments.save};
  std::error_code error;
  fs::create_directories(folder.path, error);
  if (error) {
    throw IoError(
        fmt::format("cannot make the folder '{}': {}", folder.path.string(), error.message()));
  }
  if (fs::exists(folder.checkpoint(), error)) {
    throw IoError(
        fmt::format("'{}' holds a run already; --resume goes on with it", folder.path.string()));
  }
  return folder;
}

nlohmann::json read_settings(const RunFolder& folder, const std::string& task) {
  Safetensors file = read_safetensors(folder.checkpoint());
  return parse_settings(file.metadata[kSettings], task, folder.checkpoint());
}

void train(const TrainingTask& task, const RunFolder& folder) {
  const TrainingSettings training = training_settings(task.settings, folder.checkpoint());
  nn::AdamW<> optimizer(task.model.parameters(), training.learning_rate);
  nn::Trainer<> trainer(task.model, optimizer, trainer_options(task, folder, training));
  const InterruptGuard guard;
  if (folder.is_resumed) {
    trainer.resume();
  } else {
    trainer.save();  // a folder that cannot be written is found out before the work
  }
  bool is_finished = false;
  {
    TrainingProgress progress(trainer.step(), training.steps, task.items_per_step, task.unit);
    is_finished = trainer.run(task.loss, [&](const nn::TrainingStep& done) {
      progress.report(done);
      return InterruptGuard::signal() == 0;
    });
  }
  if (!folder.path.empty()) {
    nn::save(folder.model(), task.model, {{kSettings, task.settings.dump()}, {"format", "pt"}});
  }
  if (!is_finished) throw_interrupted(folder, trainer.step(), task, training.steps);
}

}  // namespace heed::cli
