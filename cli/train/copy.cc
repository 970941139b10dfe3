// heed train copy: attention learns to repeat a sequence.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <memory>
#include <string>

#include "arguments.h"
#include "heed/random.h"
#include "train/copy_task.h"
#include "train/positions.h"
#include "train/session.h"
#include "train/train_verbs.h"
#include "verbs.h"

namespace heed::cli {

namespace {

constexpr const char* kCopyTask = "copy";

struct CopyArguments {
  TrainArguments train{{.steps = 400, .batch = 32}, {}, {}};
  std::int64_t length = 10;
  std::int64_t symbols = 16;
  std::string positions = ModelSettings{}.positions;
  std::string mask = "none";
};

nlohmann::json new_settings(const CopyArguments& arguments) {
  ModelSettings model;
  model.vocab_size = arguments.symbols + 1;
  model.context = 2 * arguments.length;
  model.layers = 1;
  model.positions = arguments.positions;
  model.mask = arguments.mask;
  check(arguments.train.training);
  check(model);
  return {{"task", kCopyTask},
          {"training", to_json(arguments.train.training)},
          {"model", to_json(model)},
          {"length", arguments.length},
          {"symbols", arguments.symbols}};
}

void print(const CopyArguments& arguments, const nlohmann::json& settings, const CausalModel& model,
           double exact) {
  constexpr const char* kMatch = "exact_match";
  if (arguments.train.as_json) {
    nlohmann::json json = settings;
    json["parameters"] = model.num_parameters();
    json[kMatch] = exact;
    std::cout << json.dump() << '\n';
    return;
  }
  std::cout << fmt::format(
      "task         repeat {} symbols out of {}\n"
      "model        {} parameters, one block of attention with 4 heads\n"
      "exact match  {:.1f} % of 1000 new sequences\n",
      settings["length"].get<std::int64_t>(), settings["symbols"].get<std::int64_t>(),
      model.num_parameters(), 100 * exact);
}

void run_copy(const CopyArguments& arguments) {
  const RunFolder folder = open_run(arguments.train);
  const nlohmann::json settings =
      folder.is_resumed ? read_settings(folder, kCopyTask) : new_settings(arguments);
  const TrainingSettings training = training_settings(settings, folder.checkpoint());
  const ModelSettings sizes = model_settings(settings, folder.checkpoint());
  const CopyTask task = CopyTask::of(sizes);
  set_seed(training.seed);
  CausalModel model(sizes);
  const auto loss = [&](std::int64_t) -> StepLoss {
    return {sequence_loss(model, draw_batch(task, training.batch, default_generator())),
            training.batch};
  };
  train({model, loss, "sequences", settings}, folder);
  TorchGenerator random(~training.seed);
  const SequenceScore score = sequence_score(model, draw_batch(task, 1000, random));
  print(arguments, settings, model, score.exact_match);
}

}  // namespace

void add_train_copy(CLI::App& train) {
  CLI::App* verb =
      train.add_subcommand("copy", "Repeat a sequence of symbols: attention learns where to look");
  const auto arguments = std::make_shared<CopyArguments>();
  add_training_options(*verb, arguments->train);
  exclude_from_resume(
      *verb, add_option(*verb, "--length", arguments->length, "Symbols to repeat: 1 to 256")
                 ->capture_default_str()
                 ->check(CLI::Range(1, 256).description(""))
                 ->type_name("N"));
  exclude_from_resume(
      *verb, add_option(*verb, "--symbols", arguments->symbols, "Different symbols: 1 to 1000")
                 ->capture_default_str()
                 ->check(CLI::Range(1, 1000).description(""))
                 ->type_name("N"));
  exclude_from_resume(*verb, add_option(*verb, "--positions", arguments->positions,
                                        "How the model knows where a symbol stands")
                                 ->capture_default_str()
                                 ->check(CLI::IsMember(position_names()).description(""))
                                 ->type_name(fmt::format("{}", fmt::join(position_names(), "|"))));
  exclude_from_resume(
      *verb, add_option(*verb, "--mask", arguments->mask,
                        "Which earlier symbols are seen, by name: \"block_window(1, 0, 8)\"; none: "
                        "all of them")
                 ->capture_default_str()
                 ->type_name("MASK"));
  verb->callback([arguments] { run_copy(*arguments); });
}

}  // namespace heed::cli
