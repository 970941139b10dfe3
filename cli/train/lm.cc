// heed train lm: a language model learns to write text.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>
#include <memory>
#include <string>

#include "arguments.h"
#include "heed/tasks/shipped_text.h"
#include "heed/train/character_training.h"
#include "input_text.h"
#include "ranks.h"
#include "train/interrupt.h"
#include "train/session.h"
#include "verbs.h"

namespace heed::cli {

namespace {

struct LmArguments {
  TrainArguments train{train::CharacterTraining{}.training, {}, {}};
  models::CausalConfig model;
  std::string text;
  bool is_context_parallel = false;
};

void print_json(const train::CharacterRun& run, const train::CharacterLosses& losses) {
  const auto describe = [](const train::LossAtLength& at) -> nlohmann::json {
    if (!at.loss) return {{"length", at.length}, {"loss", nullptr}, {"sequences", 0}};
    return {{"length", at.length}, {"loss", at.loss->mean}, {"sequences", at.loss->measured}};
  };
  nlohmann::json json = nlohmann::json::parse(run.settings);
  json["loss"] = describe(losses.learned)["loss"];
  json["sequences"] = describe(losses.learned)["sequences"];
  json["held_out"] = nlohmann::json::array();
  for (const train::LossAtLength& at : losses.held_out) json["held_out"].push_back(describe(at));
  std::cout << json.dump() << '\n';
}

void print_summary(const train::HeldOutText& text, const train::CharacterRun& run,
                   const train::CharacterLosses& losses) {
  const models::CausalTransformer& model = *run.model.model;
  std::cout << fmt::format("text   {} characters, {} different; the last tenth is held out\n",
                           text.ids.size(), text.characters.size())
            << fmt::format("model  {} parameters\n", model.num_parameters());
  const auto line = [&](const char* name, const char* read, const train::LossAtLength& at) {
    const bool is_learned = run.model.config.positions == "learned";
    const std::string reason = at.loss                           ? ""
                               : at.length <= model.max_length() ? ": it is shorter"
                               : is_learned                      ? ": no position was learned there"
                                                                 : ": positions end before";
    const bool is_part = at.loss && at.loss->measured < at.loss->sequences;
    const std::string part =
        is_part ? fmt::format("{} of {} ", at.loss->measured, at.loss->sequences) : "";
    std::cout << fmt::format("{:5}  {:5}  on {}, in {}sequences of {}{}\n", name,
                             at.loss ? fmt::format("{:.3f}", at.loss->mean) : "-", read, part,
                             at.length, reason);
  };
  line("loss", "what it learned from", losses.learned);
  for (const train::LossAtLength& at : losses.held_out) line("", "what was held out", at);
}

// Checks the settings before any file is made, so that the error is one of the command line.
void check_new(train::CharacterTraining settings, const train::HeldOutText& text) {
  settings.model.vocab_size = text.characters.size();
  check_given(settings.training);
  check_given(settings.model);
}

// Trains with progress on stderr. Throws Interrupted when Ctrl-C ended it, after saving.
train::CharacterRun train_characters_shown(const train::CharacterTraining& settings,
                                           const train::HeldOutText& text,
                                           const train::RunFolder& folder) {
  const InterruptGuard guard;
  train::CharacterRun run = [&] {
    TrainingProgress progress;
    return train::train_characters(settings, text, folder, progress, kOptionNames);
  }();
  finish_run("lm", run.training, folder, run.outcome);
  return run;
}

void run_lm(const LmArguments& arguments) {
  const train::HeldOutText text(arguments.text.empty()
                                    ? std::string(tasks::shipped_text())
                                    : from_first_rank([&] { return read_input(arguments.text); }));
  const train::RunFolder folder = open_run(arguments.train);
  const train::CharacterTraining settings{arguments.train.training, arguments.model, ranks(),
                                          arguments.is_context_parallel};
  if (!folder.is_resumed) check_new(settings, text);
  const train::CharacterRun run = train_characters_shown(settings, text, folder);
  const bool divides_tokens = settings.is_context_parallel && ranks() != nullptr;
  if (!divides_tokens && !is_first_rank()) return;
  const train::CharacterLosses losses = divides_tokens ? train::losses_on(run.model, text, *ranks())
                                                       : train::losses_on(run.model, text);
  if (!is_first_rank()) return;
  if (arguments.train.as_json) {
    print_json(run, losses);
  } else {
    print_summary(text, run, losses);
  }
}

}  // namespace

void add_train_lm(CLI::App& train) {
  CLI::App* verb = train.add_subcommand("lm", "Predict the next character of a text");
  const auto arguments = std::make_shared<LmArguments>();
  add_option(
      *verb, "--text", arguments->text,
      "What to learn, in UTF-8, or - for standard input; a short story that comes with heed if not "
      "given")
      ->type_name("FILE");
  add_training_options(*verb, arguments->train);
  models::CausalConfig& model = arguments->model;
  const auto add = [&](const std::string& name, auto& value, const std::string& text) {
    CLI::Option* option =
        add_option(*verb, name, value, text)->capture_default_str()->type_name("N");
    exclude_from_resume(*verb, option);
    return option;
  };
  add("--positions", model.positions, "How the model knows where a character stands")
      ->check(one_of(models::position_names()))
      ->type_name(fmt::format("{}", fmt::join(models::position_names(), "|")));
  add("--mask", model.mask,
      "Which earlier characters are seen, by name: \"streaming(4, 32)\"; none: all of them")
      ->type_name("MASK");
  add("--layers", model.layers, "Blocks of attention and feed-forward");
  add("--d-model", model.d_model, "Numbers per character, a multiple of the heads");
  add("--heads", model.heads, "Heads of attention");
  add("--context", model.context, "Characters in a sequence");
  add_flag(*verb, "--context-parallel", arguments->is_context_parallel,
           "Under mpirun each process learns from its part of every sequence, in pieces of 1024 "
           "characters, not of every batch: for long ones");
  verb->footer(
      "Losses are cross-entropies in nats a character; a uniform guess among n characters\n"
      "has ln n. `heed generate` writes with the model that --save keeps. Under mpirun each\n"
      "process learns from its part of every batch: `mpirun -n 4 heed train lm`.");
  verb->callback([arguments] { run_lm(*arguments); });
}

}  // namespace heed::cli
