// heed train copy: a model learns to repeat a sequence.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <memory>
#include <string>

#include "arguments.h"
#include "heed/core/random.h"
#include "heed/tasks/copy_task.h"
#include "heed/train/token_loss.h"
#include "ranks.h"
#include "train/run_settings.h"
#include "train/session.h"
#include "verbs.h"

namespace heed::cli {

namespace {

constexpr const char* kCopyTask = "copy";

struct CopyArguments {
  TrainArguments train{{.steps = 400, .batch = 32}, {}, {}};
  std::int64_t length = 10;
  std::int64_t symbols = 16;
  std::string positions = models::CausalConfig{}.positions;
  std::string mask = "none";
};

nlohmann::json new_settings(const CopyArguments& arguments) {
  models::CausalConfig model;
  model.vocab_size = arguments.symbols + 1;
  model.context = 2 * arguments.length;
  model.layers = 1;
  model.positions = arguments.positions;
  model.mask = arguments.mask;
  check_given(arguments.train.training);
  check_given(model);
  return {{"task", kCopyTask},
          {"training", to_json(arguments.train.training)},
          {"model", to_json(model)},
          {"length", arguments.length},
          {"symbols", arguments.symbols}};
}

void print(const CopyArguments& arguments, const nlohmann::json& settings,
           const models::CausalTransformer& model, double exact) {
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

// Returns this rank's sequences of a batch.
tasks::TokenBatch rows_of(const tasks::TokenBatch& batch, const train::BatchShare& share) {
  const auto rows = [&](const Tensor<std::int64_t>& all) {
    return to_tensor(all.view().slice(0, share.first, share.first + share.count));
  };
  return {rows(batch.inputs), rows(batch.targets)};
}

void run_copy(const CopyArguments& arguments) {
  const train::RunFolder folder = open_run(arguments.train);
  const nlohmann::json settings =
      folder.is_resumed ? read_settings(folder, kCopyTask) : new_settings(arguments);
  const auto training = train::training_settings(settings, folder.checkpoint(), kOptionNames);
  const auto config = models::causal_config(settings, folder.checkpoint(), kOptionNames);
  const tasks::CopyTask task{config.context / 2, config.vocab_size - 1};
  set_seed(training.seed);
  models::CausalTransformer model(config);
  const train::BatchShare share = train::share_of_batch(training.batch, ranks());
  const auto loss = [&](std::int64_t) -> train::StepLoss {
    const tasks::TokenBatch batch = draw_batch(task, training.batch, default_generator());
    if (share.count == 0) return {{}, 0};
    return {train::token_loss(model, rows_of(batch, share)), share.count};
  };
  run_shown({model, loss, training, "sequences", settings.dump(), nullptr, ranks()}, folder);
  if (!is_first_rank()) return;
  TorchGenerator random(~training.seed);
  const train::TokenScore score = train::token_score(model, draw_batch(task, 1000, random));
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
  exclude_from_resume(*verb,
                      add_option(*verb, "--positions", arguments->positions,
                                 "How the model knows where a symbol stands")
                          ->capture_default_str()
                          ->check(one_of(models::position_names()))
                          ->type_name(fmt::format("{}", fmt::join(models::position_names(), "|"))));
  exclude_from_resume(
      *verb, add_option(*verb, "--mask", arguments->mask,
                        "Which earlier symbols are seen, by name: \"block_window(1, 0, 8)\"; none: "
                        "all of them")
                 ->capture_default_str()
                 ->type_name("MASK"));
  verb->callback([arguments] { run_copy(*arguments); });
}

}  // namespace heed::cli
