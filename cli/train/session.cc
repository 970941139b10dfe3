#include "train/session.h"

#include <fmt/format.h>

#include <system_error>
#include <utility>

#include "arguments.h"
#include "heed/error.h"
#include "heed/nn/optimizer.h"
#include "heed/nn/state_file.h"
#include "heed/parallel.h"
#include "output_files.h"
#include "train/interrupt.h"
#include "verbs.h"

namespace heed::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* kSettings = "settings";
constexpr const char* kMemory = "memory";

// Clipping, warm-up and decay are the same for all tasks: small models are not sensitive to them.
constexpr double kWarmupShare = 0.05;
constexpr double kFloorShare = 0.05;

nn::TrainerOptions trainer_options(const TrainingTask& task, const RunFolder& folder,
                                   const TrainingSettings& training) {
  nn::TrainerOptions options{.schedule = learning_schedule(training)};
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

bool is_over(const TrainingTask& task) {
  return task.between != nullptr && task.between->is_over();
}

void remember(const TrainingTask& task, nn::Trainer<>& trainer) {
  if (task.between != nullptr) trainer.set_note(kMemory, task.between->memory());
}

void recall(const TrainingTask& task, const RunFolder& folder) {
  if (task.between == nullptr) return;
  task.between->recall(read_safetensors(folder.checkpoint()).metadata[kMemory]);
}

bool run(const TrainingTask& task, nn::Trainer<>& trainer, TrainingProgress& progress) {
  std::int64_t items = 0;
  const auto loss = [&] {
    StepLoss step = task.loss(trainer.step());
    items = step.items;
    return std::move(step.loss);
  };
  return trainer.run(loss, [&](const nn::TrainingStep& done) {
    progress.report(done, items);
    if (task.between != nullptr) task.between->after_step(done, progress);
    remember(task, trainer);
    return InterruptGuard::signal() == 0 && !is_over(task);
  });
}

}  // namespace

void add_training_options(CLI::App& verb, TrainArguments& arguments) {
  add_run_options(verb, arguments);
  add_flag(verb, "--json", arguments.as_json, "Print the result as one JSON object");
  exclude_from_resume(verb, add_option(verb, "--steps", arguments.training.steps,
                                       "How many batches are learned from")
                                ->capture_default_str()
                                ->type_name("N"));
}

void add_threads_option(CLI::App& verb, int& threads) {
  add_option(verb, "--threads", threads, "All the machine has, if not given")
      ->check(CLI::Range(1, 1024).description(""))
      ->type_name("N");
}

void add_run_options(CLI::App& verb, TrainArguments& arguments) {
  TrainingSettings& training = arguments.training;
  add_option(verb, "--save", arguments.save,
             "The folder for checkpoints and the model; made if it is not there")
      ->type_name("DIR");
  CLI::Option* resume =
      add_option(verb, "--resume", arguments.resume,
                 "Go on with the run in this folder, with its settings, to the same result "
                 "as if it had never stopped; no other setting of a run can be given with it")
          ->type_name("DIR");
  resume->excludes("--save");
  add_threads_option(verb, arguments.threads);
  const auto add = [&](const std::string& name, auto& value, const std::string& text,
                       const std::string& type) {
    exclude_from_resume(
        verb, add_option(verb, name, value, text)->capture_default_str()->type_name(type));
  };
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
  if (arguments.threads > 0) set_num_threads(arguments.threads);
  if (!arguments.resume.empty()) return {arguments.resume, true};
  return arguments.save.empty() ? RunFolder{} : new_run(arguments.save);
}

RunFolder new_run(const fs::path& path) {
  RunFolder folder{path};
  make_folder(path);
  if (fs::exists(folder.checkpoint())) {
    throw IoError(fmt::format("'{}' holds a run already; --resume goes on with it", path.string()));
  }
  refuse_existing(path, {folder.model().filename().string()});
  return folder;
}

nlohmann::json read_settings(const RunFolder& folder, const std::string& task) {
  Safetensors file = read_safetensors(folder.checkpoint());
  return parse_settings(file.metadata[kSettings], task, folder.checkpoint());
}

nn::WarmupCosine learning_schedule(const TrainingSettings& training) {
  return {
      .peak = training.learning_rate,
      .warmup_steps = static_cast<std::int64_t>(kWarmupShare * static_cast<double>(training.steps)),
      .total_steps = training.steps,
      .floor = kFloorShare * training.learning_rate};
}

void train(const TrainingTask& task, const RunFolder& folder) {
  const TrainingSettings training = training_settings(task.settings, folder.checkpoint());
  nn::AdamW<> optimizer(task.model.parameters(), training.learning_rate);
  nn::Trainer<> trainer(task.model, optimizer, trainer_options(task, folder, training));
  const InterruptGuard guard;
  if (folder.is_resumed) {
    trainer.resume();
    recall(task, folder);
  } else {
    remember(task, trainer);
    trainer.save();  // a folder that cannot be written is found out before the work
  }
  bool is_finished = is_over(task);
  if (!is_finished) {
    TrainingProgress progress(trainer.step(), training.steps, task.unit);
    is_finished = run(task, trainer, progress) || is_over(task);
  }
  if (!folder.path.empty() && task.between == nullptr) {
    nn::save(folder.model(), task.model, {{kSettings, task.settings.dump()}, {"format", "pt"}});
  }
  if (!folder.path.empty()) note_written(folder.path);
  if (!is_finished) throw_interrupted(folder, trainer.step(), task, training.steps);
}

}  // namespace heed::cli
