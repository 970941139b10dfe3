// heed generate: a trained language model writes.
#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "arguments.h"
#include "heed/models/character_model.h"
#include "heed/viz/terminal.h"
#include "train/settings.h"
#include "verbs.h"

namespace heed::cli {

namespace {

struct GenerateArguments {
  std::string model;
  std::string prompt = "The ";
  models::TextSampling sampling;
  std::int64_t beam = 0;  // 0: characters are drawn
  bool as_json = false;
};

void check_usage(const CLI::App& verb, const GenerateArguments& arguments) {
  for (const char* option : {"--temperature", "--seed"}) {
    if (arguments.beam == 0 || verb.count(option) == 0) continue;
    throw UsageError(
        fmt::format("{} does not go with --beam, which writes the likeliest text", option));
  }
  const models::TextSampling& sampling = arguments.sampling;
  if (sampling.tokens < 0 || sampling.tokens > 1'000'000) {
    throw UsageError(fmt::format("--tokens is {}, expected 0 to 1000000", sampling.tokens));
  }
  if (!(sampling.temperature >= 0 && std::isfinite(sampling.temperature))) {
    throw UsageError(
        fmt::format("--temperature is {}, expected a number of at least 0", sampling.temperature));
  }
}

// The lines are made harmless for a terminal: a model may have learned any character.
void print_text(std::string_view text) {
  for (;;) {
    const std::size_t end = text.find('\n');
    std::cout << sanitize_for_terminal(text.substr(0, end)) << '\n';
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

std::string text_written(const models::CharacterModel& saved, const GenerateArguments& arguments) {
  const models::TextSampling& sampling = arguments.sampling;
  if (arguments.beam == 0) return models::continue_text(saved, arguments.prompt, sampling);
  return models::likeliest_text(saved, arguments.prompt,
                                {.beam = arguments.beam, .tokens = sampling.tokens});
}

void run_generate(const CLI::App& verb, const GenerateArguments& arguments) {
  check_usage(verb, arguments);
  const models::CharacterModel saved = models::load_character_model(arguments.model, kOptionNames);
  const std::string text = text_written(saved, arguments);
  if (arguments.as_json) {
    std::cout << nlohmann::json{{"prompt", arguments.prompt}, {"text", text}}.dump(-1, ' ', true)
              << '\n';
  } else {
    print_text(arguments.prompt + text);
  }
}

}  // namespace

void add_generate(CLI::App& command) {
  CLI::App* verb =
      command.add_subcommand("generate", "Write text with a model that `heed train lm` has saved");
  const auto arguments = std::make_shared<GenerateArguments>();
  models::TextSampling& sampling = arguments->sampling;
  add_option(*verb, "--model", arguments->model, "The folder that --save named, or a file of it")
      ->required()
      ->type_name("DIR");
  add_option(*verb, "--prompt", arguments->prompt, "What to go on from")
      ->capture_default_str()
      ->type_name("TEXT");
  add_option(*verb, "--tokens", sampling.tokens, "How many characters to write")
      ->capture_default_str()
      ->type_name("N");
  add_option(*verb, "--temperature", sampling.temperature,
             "Below 1 the likely becomes likelier; 0: always the likeliest character")
      ->capture_default_str()
      ->type_name("T");
  add_option(*verb, "--seed", sampling.seed, "Draws the characters")
      ->capture_default_str()
      ->type_name("N");
  add_option(*verb, "--beam", arguments->beam,
             "Draw nothing: follow so many texts at once and write the likeliest")
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N");
  add_flag(*verb, "--json", arguments->as_json, "Print prompt and text as one JSON object");
  verb->callback([verb, arguments] { run_generate(*verb, *arguments); });
}

}  // namespace heed::cli
