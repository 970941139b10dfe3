// heed train copy: attention learns to repeat a sequence.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "heed/random.h"
#include "train/language_model.h"
#include "train/session.h"
#include "train/train_verbs.h"
#include "verbs.h"

namespace heed::cli {

namespace {

constexpr const char* kTask = "copy";

struct CopyArguments {
  TrainArguments train{{.steps = 400, .batch = 32}, {}, {}};
  std::int64_t length = 10;
  std::int64_t symbols = 16;
};

// What the task is: `length` symbols, a separator, and the same symbols again.
struct CopyTask {
  std::int64_t length;
  std::int64_t symbols;

  std::int64_t separator() const { return symbols; }
  // The last symbol is never read, only predicted.
  std::int64_t sequence_length() const { return 2 * length; }
};

struct CopyBatch {
  Tensor<std::int64_t> inputs;   // [batch, 2 · length]
  Tensor<std::int64_t> targets;  // kIgnoreIndex before the separator: nobody can know the symbols
};

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

// The share of `count` new sequences that are repeated without a mistake. Each symbol is predicted
// from the true ones before it; where all are right, these are the predicted ones.
double exact_match(CausalModel& model, const CopyTask& task, std::uint64_t seed,
                   std::int64_t count) {
  const nn::NoGrad no_grad;
  model.eval();
  TorchGenerator random(~seed);
  const CopyBatch batch = draw_batch(task, count, random);
  const auto logits = model.forward(batch.inputs).value();
  std::int64_t exact = 0;
  for (std::int64_t row = 0; row < count; ++row) {
    bool is_exact = true;
    for (std::int64_t i = task.length; i < task.sequence_length(); ++i) {
      const auto scores = logits.select(0, row).select(0, i).elements();
      const auto likeliest = std::max_element(scores.begin(), scores.end()) - scores.begin();
      is_exact = is_exact && likeliest == batch.targets(row, i);
    }
    exact += is_exact ? 1 : 0;
  }
  return static_cast<double>(exact) / static_cast<double>(count);
}

nlohmann::json new_settings(const CopyArguments& arguments) {
  ModelSettings model;
  model.vocab_size = arguments.symbols + 1;
  model.context = 2 * arguments.length;
  model.layers = 1;
  check(arguments.train.training);
  check(model);
  return {{"task", kTask},
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
      folder.is_resumed ? read_settings(folder, kTask) : new_settings(arguments);
  const TrainingSettings training = training_settings(settings, folder.checkpoint());
  const ModelSettings sizes = model_settings(settings, folder.checkpoint());
  const CopyTask task{sizes.context / 2, sizes.vocab_size - 1};
  set_seed(training.seed);
  CausalModel model(sizes);
  const auto loss = [&](std::int64_t) -> StepLoss {
    const CopyBatch batch = draw_batch(task, training.batch, default_generator());
    return {nn::cross_entropy(model.forward(batch.inputs), TensorView(batch.targets.view())),
            training.batch};
  };
  train({model, loss, "sequences", settings}, folder);
  print(arguments, settings, model, exact_match(model, task, training.seed, 1000));
}

}  // namespace

void add_train_copy(CLI::App& train) {
  CLI::App* verb =
      train.add_subcommand("copy", "Repeat a sequence of symbols: attention learns where to look");
  const auto arguments = std::make_shared<CopyArguments>();
  add_training_options(*verb, arguments->train);
  exclude_from_resume(*verb, verb->add_option("--length", arguments->length, "Symbols to repeat")
                                 ->capture_default_str()
                                 ->check(CLI::Range(1, 256))
                                 ->type_name("N"));
  exclude_from_resume(*verb, verb->add_option("--symbols", arguments->symbols, "Different symbols")
                                 ->capture_default_str()
                                 ->check(CLI::Range(1, 1000))
                                 ->type_name("N"));
  verb->callback([arguments] { run_copy(*arguments); });
}

}  // namespace heed::cli
