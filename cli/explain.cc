// heed explain: attention on a sentence that the user gives.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>

#include "arguments.h"
#include "heed/inspect/sentence.h"
#include "heed/viz/layout.h"
#include "heed/viz/terminal.h"
#include "input_text.h"
#include "mask_argument.h"
#include "models/explain_model.h"
#include "sentence_files.h"
#include "verbs.h"

namespace heed::cli {

namespace {

constexpr std::int64_t kMaxSentenceHeads = 64;
constexpr std::int64_t kMaxDModel = 4096;
constexpr double kMinTemperature = 1e-6;
constexpr double kMaxTemperature = 1e6;

struct ExplainArguments {
  std::vector<std::string> words;
  SentenceSettings settings;
  std::string mask = "causal";
  bool no_position = false;
  std::optional<std::int64_t> head;
  // Options for a trained model.
  std::string model;
  std::optional<std::string> pair;
  std::optional<std::int64_t> layer;
  std::string out;
  PictureArguments picture;
  bool as_json = false;
};

void check_range(std::string_view option, double value, double low, double high) {
  if (value >= low && value <= high) return;
  throw UsageError(fmt::format("{} is {}, expected {} to {}", option, value, low, high));
}

SentenceSettings checked_settings(const ExplainArguments& arguments) {
  SentenceSettings settings = arguments.settings;
  check_range("--heads", static_cast<double>(settings.num_heads), 1, kMaxSentenceHeads);
  check_range("--d-model", static_cast<double>(settings.d_model), 2, kMaxDModel);
  if (settings.temperature != 0 &&
      (settings.temperature < kMinTemperature || settings.temperature > kMaxTemperature)) {
    throw UsageError(fmt::format("--temperature is {}, expected 0, or {} to {}",
                                 settings.temperature, kMinTemperature, kMaxTemperature));
  }
  settings.has_positions = !arguments.no_position;
  settings.mask = parse_mask("--mask", arguments.mask);
  if (settings.d_model % settings.num_heads != 0) {
    throw UsageError(fmt::format("--d-model is {}, expected a multiple of --heads, {}",
                                 settings.d_model, settings.num_heads));
  }
  if (settings.has_positions && settings.d_model % 2 != 0) {
    throw UsageError(
        fmt::format("--d-model is {}, expected an even number: a position encoding "
                    "needs pairs (or pass --no-position)",
                    settings.d_model));
  }
  if (arguments.head) {
    check_range("--head", static_cast<double>(*arguments.head), 0,
                static_cast<double>(settings.num_heads - 1));
  }
  return settings;
}

std::string describe_settings(const SentenceSettings& settings) {
  return fmt::format(
      "{} heads of {} dimensions, mask {}, temperature {}, {}, random parameters (seed {}).",
      settings.num_heads, settings.head_dim(), settings.mask.description(), settings.temperature,
      settings.has_positions ? "sinusoidal positions" : "no positions", settings.seed);
}

std::string describe_reading(const SentenceAttention& attention, const TerminalStyle& style) {
  const auto visible = attention.visible.elements();
  const bool hides = std::find(visible.begin(), visible.end(), false) != visible.end();
  return fmt::format(
      "A row is the token that asks, a column a token that is listened to, and each row adds up "
      "to 1.{}",
      hides ? fmt::format(" {} marks what the mask hides.", style.utf8 ? "·" : "x") : "");
}

std::vector<std::int64_t> chosen_heads(const SentenceAttention& attention,
                                       std::optional<std::int64_t> head) {
  return head ? std::vector<std::int64_t>{*head} : all_heads(attention);
}

std::string summary_of(const SentenceAttention& attention, const TerminalStyle& style) {
  const std::int64_t count = attention.num_tokens();
  return wrap_text(fmt::format("{} token{}; {}", count, count == 1 ? "" : "s",
                               describe_settings(attention.settings)),
                   style.width);
}

// Used where a file was written: prints a summary and the path instead of the heads.
void print_written(const SentenceAttention& attention, const std::string& path) {
  const TerminalStyle style = detect_terminal(STDOUT_FILENO);
  std::cout << summary_of(attention, style) << wrote(path);
}

void print_explanation(const SentenceAttention& attention, std::optional<std::int64_t> head) {
  const TerminalStyle style = detect_terminal(STDOUT_FILENO);
  const auto heads = chosen_heads(attention, head);
  const bool is_long = attention.num_tokens() > kMaxDrawnTokens;
  std::cout << summary_of(attention, style) << '\n'
            << (is_long ? "" : draw_tokens(attention, style) + '\n')
            << draw_heads(attention, heads, style) << '\n'
            << wrap_text(describe_reading(attention, style), style.width);
}

// Options that do not go with a trained model, which has these settings itself.
constexpr const char* kOptionsOfRandomParameters[] = {"--heads", "--d-model",     "--seed",
                                                      "--mask",  "--temperature", "--no-position"};

void explain_with_model(const CLI::App& verb, const ExplainArguments& arguments) {
  for (const char* option : kOptionsOfRandomParameters) {
    if (verb.count(option) == 0) continue;
    throw UsageError(fmt::format("{} does not go with --model, whose heads are trained", option));
  }
  explain_model({.model = arguments.model,
                 .text = read_words(arguments.words),
                 .pair = arguments.pair,
                 .layer = arguments.layer,
                 .head = arguments.head,
                 .out = arguments.out,
                 .picture = arguments.picture,
                 .as_json = arguments.as_json});
}

void explain(const CLI::App& verb, const ExplainArguments& arguments) {
  if (!arguments.model.empty()) return explain_with_model(verb, arguments);
  if (arguments.layer || arguments.pair) {
    throw UsageError(fmt::format("{} goes with --model", arguments.layer ? "--layer" : "--pair"));
  }
  const SentenceSettings settings = checked_settings(arguments);
  if (!arguments.out.empty()) check_ending(arguments.out);
  const std::string sentence = read_words(arguments.words);
  const SentenceAttention attention = attend(sentence, settings);
  if (!arguments.out.empty()) {
    write_sentence(arguments.out, attention, chosen_heads(attention, arguments.head),
                   arguments.picture);
  }
  if (arguments.as_json) {
    std::cout << to_json(attention);
  } else if (!arguments.out.empty()) {
    print_written(attention, arguments.out);
  } else {
    print_explanation(attention, arguments.head);
  }
}

}  // namespace

void add_explain(CLI::App& command) {
  CLI::App* verb =
      command.add_subcommand("explain", "Compute the attention of a sentence and show it");
  auto arguments = std::make_shared<ExplainArguments>();
  SentenceSettings& settings = arguments->settings;
  add_option(
      *verb, "SENTENCE", arguments->words,
      "1 to 512 words of any script; after -- where it starts with a hyphen; -: standard input")
      ->required();
  add_option(*verb, "--heads", settings.num_heads, "How many heads attend side by side: 1 to 64")
      ->capture_default_str();
  add_option(*verb, "--d-model", settings.d_model, "Numbers per token: a multiple of the heads")
      ->capture_default_str();
  add_option(*verb, "--seed", settings.seed,
             "Draws the parameters: 0 to 4294967295, as torch.manual_seed")
      ->check(CLI::Range(std::numeric_limits<std::uint32_t>::max()).description(""))
      ->capture_default_str();
  add_option(*verb, "--mask", arguments->mask, fmt::format("Which tokens see which: {}", kMaskHelp))
      ->capture_default_str();
  add_option(
      *verb, "--temperature", settings.temperature,
      "Divides the scores: below 1 sharpens the weights, above 1 evens them out; 0 leaves each "
      "row its largest")
      ->capture_default_str();
  add_flag(*verb, "--no-position", arguments->no_position,
           "Do not tell attention where in the sentence a token stands");
  add_option(*verb, "--head", arguments->head, "Show and draw only this head, counted from 0");
  add_option(*verb, "--model", arguments->model,
             "Read it with a trained model: a folder of transformers, or a GGUF file")
      ->type_name("PATH");
  add_option(*verb, "--pair", arguments->pair, "A second text, for models that read two");
  add_option(*verb, "--layer", arguments->layer,
             "Show and draw this layer of the model, counted from 0; otherwise the last");
  add_option(*verb, "--out", arguments->out,
             fmt::format("Also write the heads to a file that ends in {}", kSentenceEndings))
      ->type_name("FILE");
  add_picture_options(*verb, arguments->picture);
  add_flag(*verb, "--json", arguments->as_json, "Print one JSON object with all heads instead");
  verb->footer(
      "Example:\n"
      "  heed explain \"Time flies like an arrow\" --head 1 \\\n"
      "               --mask \"causal & sliding_window(2, 0)\"\n"
      "  heed explain \"Time flies like an arrow\" --out arrow.svg --color-scale per-row\n"
      "  heed explain --model all-MiniLM-L6-v2 \"Time flies like an arrow\" --out arrow.html");
  verb->callback([verb, arguments] { explain(*verb, *arguments); });
}

}  // namespace heed::cli
