#include "train/session.h"

#include <fmt/format.h>

#include "arguments.h"
#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "heed/io/safetensors.h"
#include "models/settings.h"
#include "output_files.h"
#include "ranks.h"
#include "train/interrupt.h"
#include "verbs.h"

namespace heed::cli {

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
  train::TrainingSettings& training = arguments.training;
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

namespace {

void check_resumable(const train::RunFolder& folder) {
  if (std::filesystem::exists(folder.checkpoint())) return;
  throw IoError(
      fmt::format("'{}' has no checkpoint, checkpoint.safetensors: a run that ended before its "
                  "first one begins anew with its own command, --save in place of --resume",
                  folder.path.string()));
}

}  // namespace

train::RunFolder open_run(const TrainArguments& arguments) {
  if (arguments.threads > 0) set_num_threads(arguments.threads);
  if (!arguments.resume.empty()) {
    const train::RunFolder folder{arguments.resume, true};
    on_first_rank([&] { check_resumable(folder); });
    return folder;
  }
  if (arguments.save.empty()) return {};
  on_first_rank([&] { train::new_run(arguments.save); });
  return {arguments.save};
}

nlohmann::json read_settings(const train::RunFolder& folder, const std::string& task) {
  const std::string settings =
      from_first_rank([&] { return read_safetensors(folder.checkpoint()).metadata["settings"]; });
  return models::parse_settings(settings, task, folder.checkpoint());
}

void describe_run(const train::RunFolder& folder, const train::Translator& translator) {
  write_description(folder.path, translator);
  for (const char* name : {"settings.json", "source_vocabulary.json", "target_vocabulary.json"}) {
    note_written(folder.path / name);
  }
}

void finish_run(const std::string& task, const train::TrainingSettings& training,
                const train::RunFolder& folder, const train::RunOutcome& outcome) {
  if (!folder.path.empty()) note_written(folder.path);
  if (outcome.is_finished) return;
  const std::string advice =
      folder.path.empty()
          ? "nothing was saved, for there was no --save"
          : fmt::format("`heed train {} --resume {}` goes on", task, folder.path.string());
  throw Interrupted(InterruptGuard::signal(),
                    fmt::format("interrupted after step {} of {}; {}", outcome.steps_done,
                                training.steps, advice));
}

void run_shown(const train::TrainingTask& task, const train::RunFolder& folder) {
  const InterruptGuard guard;
  train::RunOutcome outcome;
  {
    TrainingProgress progress;
    outcome = train::run_training(task, folder, progress);
  }
  finish_run(nlohmann::json::parse(task.settings).at("task").get<std::string>(), task.training,
             folder, outcome);
}

}  // namespace heed::cli
