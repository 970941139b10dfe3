// heed generate: writes text with a trained language model.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arguments.h"
#include "heed/attention/kv_storage.h"
#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "heed/models/character_model.h"
#include "heed/viz/terminal.h"
#include "input_text.h"
#include "models/generate_texts.h"
#include "models/trained_model.h"
#include "train/session.h"
#include "train/settings.h"
#include "verbs.h"

namespace heed::cli {

namespace {

struct GenerateArguments {
  std::string model;
  std::vector<std::string> words;  // the prompt
  std::string prompt = "The ";     // the default where nothing comes from standard input
  std::string file;                // of the prompt
  int threads = 0;
  models::TextSampling sampling;
  std::int64_t beam = 0;  // 0: characters are drawn
  // Options for models other than those of `heed train`.
  std::int64_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
  double repetition_penalty = 1;
  std::vector<std::string> logit_bias;
  bool has_log_probs = false;
  std::int64_t count = 1;
  std::vector<std::string> stop;
  bool is_chat = false;
  std::string system;
  std::string cache = "float32";
  SealArguments seal;
  bool as_json = false;
};

// Returns the prompt from the command line or from standard input.
std::string prompt_of(const CLI::App& verb, const GenerateArguments& arguments) {
  if (!arguments.words.empty()) return read_words(arguments.words);
  if (!arguments.file.empty()) {
    std::string text = read_input(arguments.file);
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
    return text;
  }
  const bool is_given = verb.count("--prompt") > 0;
  return read_words({is_given || !has_standard_input() ? arguments.prompt : kStandardInput});
}

constexpr const char* kOptionsOfTrainedModels[] = {
    "--top-k",      "--top-p",     "--min-p", "--repetition-penalty",
    "--logit-bias", "--log-probs", "-n",      "--stop",
    "--chat",       "--system",    "--cache", "--seal",
    "--seal-file",  "--verify"};

void check_usage(const CLI::App& verb, const GenerateArguments& arguments) {
  const int prompts = (arguments.words.empty() ? 0 : 1) + (verb.count("--prompt") > 0 ? 1 : 0) +
                      (arguments.file.empty() ? 0 : 1);
  if (prompts > 1) {
    throw UsageError("expected the prompt once: by itself, behind --prompt or in a --file");
  }
  if (arguments.top_k < 0) {
    throw UsageError(fmt::format("--top-k is {}, expected at least 0", arguments.top_k));
  }
  if (!(arguments.top_p > 0 && arguments.top_p <= 1)) {
    throw UsageError(fmt::format("--top-p is {}, expected more than 0 to 1", arguments.top_p));
  }
  if (!(arguments.min_p >= 0 && arguments.min_p <= 1)) {
    throw UsageError(fmt::format("--min-p is {}, expected 0 to 1", arguments.min_p));
  }
  if (!(arguments.repetition_penalty > 0 && std::isfinite(arguments.repetition_penalty))) {
    throw UsageError(fmt::format("--repetition-penalty is {}, expected a number of more than 0",
                                 arguments.repetition_penalty));
  }
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

// Sanitizes the lines for a terminal: a model may have learned any character.
void print_text(std::string_view text) {
  for (;;) {
    const std::size_t end = text.find('\n');
    std::cout << sanitize_for_terminal(text.substr(0, end)) << '\n';
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

std::string text_written(const models::CharacterModel& saved, const std::string& prompt,
                         const GenerateArguments& arguments) {
  const models::TextSampling& sampling = arguments.sampling;
  if (arguments.beam == 0) return models::continue_text(saved, prompt, sampling);
  return models::likeliest_text(saved, prompt, {.beam = arguments.beam, .tokens = sampling.tokens});
}

std::vector<std::string_view> storage_names() {
  std::vector<std::string_view> names;
  for (const KvStorage storage : kKvStorages) names.push_back(to_string(storage));
  return names;
}

KvStorage cache_storage(const std::string& name) {
  try {
    return parse_kv_storage(name, "--cache");
  } catch (const InvalidArgument& error) {
    throw UsageError(error.what());
  }
}

// Reads ID=VALUE.
std::pair<std::int64_t, double> logit_bias_of(const std::string& text) {
  std::int64_t id = 0;
  double bias = 0;
  const char* const end = text.data() + text.size();
  const auto [equals, error] = std::from_chars(text.data(), end, id);
  const bool has_value = error == std::errc() && equals != end && *equals == '=';
  const auto value = has_value ? std::from_chars(equals + 1, end, bias) : std::from_chars_result{};
  if (!has_value || value.ec != std::errc() || value.ptr != end || id < 0 || std::isnan(bias)) {
    throw UsageError(
        fmt::format("--logit-bias is '{}', expected the id of a token, = and a number", text));
  }
  return {id, bias};
}

// True if messages come from standard input, one a line.
bool has_turns(const CLI::App& verb, const GenerateArguments& arguments) {
  const bool has_prompt =
      !arguments.words.empty() || verb.count("--prompt") > 0 || !arguments.file.empty();
  return arguments.is_chat && !has_prompt && (has_standard_input() || ::isatty(STDIN_FILENO) != 0);
}

void check_chat(const TextRequest& request, const CLI::App& verb) {
  if (!request.system.empty() && !request.is_chat) {
    throw UsageError("--system goes with --chat");
  }
  if (request.count > 1 && request.options.sampling.temperature == 0) {
    throw UsageError(
        "-n goes with a --temperature of more than 0: otherwise all texts are the same");
  }
  for (const char* option : {"--seal", "--seal-file", "--verify"}) {
    if (verb.count(option) == 0) continue;
    if (request.has_turns) {
      throw UsageError(fmt::format("{} goes with one message, given behind --chat", option));
    }
    if (request.count > 1)
      throw UsageError(fmt::format("{} goes with one text, not with -n", option));
  }
  if (request.has_turns && request.count > 1) {
    throw UsageError("-n goes with one message, given behind --chat");
  }
}

void write_with_trained_model(const CLI::App& verb, const GenerateArguments& arguments) {
  const KvStorage cache = cache_storage(arguments.cache);
  if (arguments.beam != 0) {
    throw UsageError("--beam goes with models that `heed train lm` has saved");
  }
  const bool turns = has_turns(verb, arguments);
  TextRequest request{.model = arguments.model,
                      .prompt = turns ? std::string() : prompt_of(verb, arguments),
                      .is_chat = arguments.is_chat,
                      .has_turns = turns,
                      .system = arguments.system,
                      .count = arguments.count,
                      .options = {},
                      .seal = arguments.seal,
                      .as_json = arguments.as_json};
  models::GenerateOptions& options = request.options;
  options.max_tokens = arguments.sampling.tokens;
  options.sampling = {arguments.sampling.temperature, arguments.top_k, arguments.top_p,
                      arguments.min_p};
  options.repetition_penalty = arguments.repetition_penalty;
  for (const std::string& bias : arguments.logit_bias) {
    options.logit_bias.push_back(logit_bias_of(bias));
  }
  options.log_probs = arguments.has_log_probs;
  options.seed = verb.count("--seed") > 0 ? arguments.sampling.seed : 0;
  options.stop = arguments.stop;
  options.past = {.key_storage = cache, .value_storage = cache};
  check_chat(request, verb);
  write_text(request);
}

void run_generate(const CLI::App& verb, const GenerateArguments& arguments) {
  check_usage(verb, arguments);
  if (arguments.threads > 0) set_num_threads(arguments.threads);
  if (is_trained_model(arguments.model)) return write_with_trained_model(verb, arguments);
  for (const char* option : kOptionsOfTrainedModels) {
    if (verb.count(option) == 0) continue;
    throw UsageError(
        fmt::format("{} goes with folders of transformers and GGUF files, '{}' is neither", option,
                    arguments.model));
  }
  const models::CharacterModel saved = models::load_character_model(arguments.model, kOptionNames);
  const std::string prompt = prompt_of(verb, arguments);
  const std::string text = text_written(saved, prompt, arguments);
  if (arguments.as_json) {
    std::cout << nlohmann::json{{"prompt", prompt}, {"text", text}}.dump(-1, ' ', true) << '\n';
  } else {
    print_text(prompt + text);
  }
}

}  // namespace

void add_generate(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("generate", "Write text with a trained model");
  const auto arguments = std::make_shared<GenerateArguments>();
  models::TextSampling& sampling = arguments->sampling;
  add_option(*verb, "PROMPT", arguments->words,
             "What to go on from; after -- where it starts with a hyphen; -, or nothing where "
             "something is "
             "sent there: standard input");
  add_option(*verb, "--model", arguments->model,
             "What `heed train lm --save` named, a folder of transformers (config.json, "
             "model.safetensors, tokenizer.json), or a GGUF file")
      ->required()
      ->type_name("PATH");
  add_option(*verb, "--prompt", arguments->prompt, "The same as PROMPT")
      ->capture_default_str()
      ->type_name("TEXT");
  add_option(*verb, "--file", arguments->file, "A file with the prompt; -: standard input")
      ->type_name("FILE");
  add_option(*verb, "--tokens", sampling.tokens, "How many tokens to write at most")
      ->capture_default_str()
      ->type_name("N");
  add_option(*verb, "--temperature", sampling.temperature,
             "Below 1 the likely becomes likelier; 0: always the likeliest token")
      ->capture_default_str()
      ->type_name("T");
  add_option(*verb, "--seed", sampling.seed, "Draws the tokens")
      ->capture_default_str()
      ->type_name("N");
  add_option(*verb, "--beam", arguments->beam,
             "Draw nothing: follow so many texts at once and write the likeliest")
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N");
  add_option(*verb, "--top-k", arguments->top_k, "Draw from so many likeliest tokens; 0: all")
      ->capture_default_str()
      ->type_name("N");
  add_option(*verb, "--top-p", arguments->top_p,
             "Draw from the likeliest tokens that have this probability together")
      ->capture_default_str()
      ->type_name("P");
  add_option(*verb, "--min-p", arguments->min_p,
             "Draw only from tokens that have this share of the likeliest one's probability")
      ->capture_default_str()
      ->type_name("P");
  add_option(*verb, "--repetition-penalty", arguments->repetition_penalty,
             "Above 1 tokens that the text has become less likely")
      ->capture_default_str()
      ->type_name("R");
  add_option(*verb, "--logit-bias", arguments->logit_bias,
             "Adds a number to the logit of a token; may be given several times")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false)
      ->type_name("ID=VALUE");
  add_flag(*verb, "--log-probs", arguments->has_log_probs,
           "Also print the logarithm of each token's probability");
  add_option(*verb, "-n", arguments->count, "Write so many texts, each drawn anew")
      ->check(CLI::Range(1, 1000).description(""))
      ->capture_default_str()
      ->type_name("N");
  add_option(*verb, "--stop", arguments->stop, "End before this text; may be given several times")
      ->take_all()
      ->expected(1)
      ->allow_extra_args(false)
      ->type_name("TEXT");
  add_flag(*verb, "--chat", arguments->is_chat,
           "The prompt is a message to a model that answers, in its own template; without a prompt "
           "each line of standard input is a message, /reset begins anew, /exit ends");
  add_option(*verb, "--system", arguments->system, "The system message, which says how to answer")
      ->type_name("TEXT");
  add_option(*verb, "--cache", arguments->cache,
             fmt::format("How keys and values are kept: {}", fmt::join(storage_names(), ", ")))
      ->capture_default_str()
      ->type_name("TYPE");
  add_threads_option(*verb, arguments->threads);
  add_seal_options(*verb, arguments->seal);
  add_flag(*verb, "--json", arguments->as_json, "Print prompt and text as one JSON object");
  verb->footer(
      "Examples:\n"
      "  heed generate --model story --prompt \"The lighthouse\"\n"
      "  heed generate --model SmolLM2.gguf --chat \"Why is the sky blue?\"\n"
      "  heed generate --model SmolLM2.gguf --chat --system \"Be brief.\"\n"
      "  heed generate --model SmolLM2.gguf --file beginning.txt -n 3\n"
      "  heed generate --model SmolLM2.gguf --seal \"Once upon a time\"\n"
      "  heed generate --model SmolLM2.gguf --verify heed1:... \"Once upon a time\"\n"
      "\n"
      "A seal is heed1:generate:MODEL:INPUT:OPTIONS:OUTPUT:STEPS:ALL:CHECK. MODEL is the\n"
      "beginning of `sha256sum FILE`; STEPS has two characters for each token, so that\n"
      "--verify says which is the first that differs. Numbers of threads change no bit.\n"
      "docs/models.md defines each part.");
  verb->callback([verb, arguments] { run_generate(*verb, *arguments); });
}

}  // namespace heed::cli
