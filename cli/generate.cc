// heed generate: writes text with a trained language model.
#include "heed/models/generate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
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
#include "heed/core/cancellation.h"
#include "heed/core/error.h"
#include "heed/models/character_model.h"
#include "heed/viz/terminal.h"
#include "input_text.h"
#include "models/sealed_run.h"
#include "models/sealing.h"
#include "models/trained_model.h"
#include "train/interrupt.h"
#include "train/settings.h"
#include "verbs.h"

namespace heed::cli {

namespace {

struct TextRequest {
  std::string model;
  std::string prompt;
  bool is_chat = false;  // the prompt is a message, to which the model's chat template is applied
  models::GenerateOptions options;
  SealArguments seal;
  bool as_json = false;
};

// Sanitizes the text for a terminal line by line: a model may write any character.
void print_piece(std::string_view text) {
  for (;;) {
    const std::size_t end = text.find('\n');
    std::cout << sanitize_for_terminal(text.substr(0, end));
    if (end == std::string_view::npos) break;
    std::cout << '\n';
    text.remove_prefix(end + 1);
  }
  std::cout << std::flush;
}

double rate(std::int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

std::string speed_line(const models::Generated& text) {
  const auto written = static_cast<std::int64_t>(text.ids.size());
  return fmt::format(
      "read {} tokens in {:.2f} s ({:.0f} a second), wrote {} in {:.2f} s ({:.1f} a second); "
      "ended by {}",
      text.prompt_tokens, text.prefill_seconds, rate(text.prompt_tokens, text.prefill_seconds),
      written, text.decode_seconds, rate(written, text.decode_seconds), to_string(text.reason));
}

void print_text_json(const TextRequest& request, const models::Generated& text,
                     const SealedRun& sealed) {
  nlohmann::json json{{"prompt", request.prompt},
                      {"text", text.text},
                      {"token_ids", text.ids},
                      {"reason", to_string(text.reason)},
                      {"prompt_tokens", text.prompt_tokens},
                      {"prefill_seconds", text.prefill_seconds},
                      {"decode_seconds", text.decode_seconds}};
  if (text.reason != models::EndReason::kCaller) sealed.add_to(json);
  std::cout << json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) << '\n';
}

std::vector<std::int64_t> prompt_ids(const models::Model& model, const TextRequest& request) {
  const text::Tokenizer& tokenizer = model.tokenizer();
  // A user's text contains no special tokens; only the chat template adds them.
  if (!request.is_chat) {
    return tokenizer.ids(request.prompt, {.parse_special_tokens = false});
  }
  const text::ChatMessage message{"user", request.prompt};
  return tokenizer.encode_chat(std::span(&message, 1)).ids;
}

// Cancels the reading of a prompt after a signal. Writing is interrupted between tokens only.
class StopOnSignal final : public Cancellation {
 public:
  void poll() noexcept override {
    if (!has_text && InterruptGuard::signal() != 0) request();
  }
  std::atomic<bool> has_text = false;
};

// Prints the text as it is generated and, on stderr, the speed. Throws Interrupted after Ctrl-C.
void write_text(TextRequest request) try {
  SealedRun sealed(request.seal, models::SealKind::kGenerate);
  const models::Model model = models::load(request.model);
  const std::vector<std::int64_t> prompt = prompt_ids(model, request);
  models::check_generate(model, prompt, request.options);
  const InterruptGuard guard;
  StopOnSignal stop;
  const CancellationScope scope(&stop);
  request.options.seal = sealed.seal();
  if (sealed.seal() != nullptr) {
    sealed.hash(model);
    sealed.check_inputs(models::begun_seal(model, prompt, request.options));
  }
  const bool is_shown = !request.as_json;
  request.options.on_text = [&](std::string_view piece) {
    stop.has_text = true;
    if (is_shown) print_piece(piece);
    return InterruptGuard::signal() == 0;
  };
  if (is_shown && !request.is_chat) print_piece(request.prompt);
  const models::Generated text = models::generate(model, prompt, request.options);
  if (is_shown) {
    std::cout << std::endl;
    std::cerr << speed_line(text) << '\n';
  } else {
    print_text_json(request, text, sealed);
  }
  if (InterruptGuard::signal() != 0) {
    throw Interrupted(InterruptGuard::signal(), "interrupted; the text so far is above");
  }
  sealed.finish(request.as_json);
} catch (const Cancelled&) {
  if (!request.as_json) std::cout << std::endl;
  throw Interrupted(InterruptGuard::signal(), "interrupted while it read the prompt");
}

struct GenerateArguments {
  std::string model;
  std::vector<std::string> words;  // the prompt
  std::string prompt = "The ";     // the default where nothing comes from standard input
  models::TextSampling sampling;
  std::int64_t beam = 0;  // 0: characters are drawn
  // Options for models other than those of `heed train`.
  std::int64_t top_k = 0;
  double top_p = 1;
  std::vector<std::string> stop;
  bool is_chat = false;
  std::string cache = "float32";
  SealArguments seal;
  bool as_json = false;
};

// Returns the prompt from the command line or from standard input.
std::string prompt_of(const CLI::App& verb, const GenerateArguments& arguments) {
  if (!arguments.words.empty()) return read_words(arguments.words);
  const bool is_given = verb.count("--prompt") > 0;
  return read_words({is_given || !has_standard_input() ? arguments.prompt : kStandardInput});
}

constexpr const char* kOptionsOfTrainedModels[] = {"--top-k", "--top-p", "--stop",      "--chat",
                                                   "--cache", "--seal",  "--seal-file", "--verify"};

void check_usage(const CLI::App& verb, const GenerateArguments& arguments) {
  if (!arguments.words.empty() && verb.count("--prompt") > 0) {
    throw UsageError("expected the prompt once, either behind --prompt or by itself");
  }
  if (arguments.top_k < 0) {
    throw UsageError(fmt::format("--top-k is {}, expected at least 0", arguments.top_k));
  }
  if (!(arguments.top_p > 0 && arguments.top_p <= 1)) {
    throw UsageError(fmt::format("--top-p is {}, expected more than 0 to 1", arguments.top_p));
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

void write_with_trained_model(const CLI::App& verb, const GenerateArguments& arguments) {
  const KvStorage cache = cache_storage(arguments.cache);
  if (arguments.beam != 0) {
    throw UsageError("--beam goes with models that `heed train lm` has saved");
  }
  TextRequest request{.model = arguments.model,
                      .prompt = prompt_of(verb, arguments),
                      .is_chat = arguments.is_chat,
                      .options = {},
                      .seal = arguments.seal,
                      .as_json = arguments.as_json};
  models::GenerateOptions& options = request.options;
  options.max_tokens = arguments.sampling.tokens;
  options.sampling = {arguments.sampling.temperature, arguments.top_k, arguments.top_p};
  options.seed = verb.count("--seed") > 0 ? arguments.sampling.seed : 0;
  options.stop = arguments.stop;
  options.past = {.key_storage = cache, .value_storage = cache};
  write_text(std::move(request));
}

void run_generate(const CLI::App& verb, const GenerateArguments& arguments) {
  check_usage(verb, arguments);
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
  add_option(*verb, "--stop", arguments->stop, "End before this text; may be given several times")
      ->take_all()
      ->expected(1)
      ->type_name("TEXT");
  add_flag(*verb, "--chat", arguments->is_chat,
           "The prompt is a message to a model that answers, in its own template");
  add_option(*verb, "--cache", arguments->cache,
             fmt::format("How keys and values are kept: {}", fmt::join(storage_names(), ", ")))
      ->capture_default_str()
      ->type_name("TYPE");
  add_seal_options(*verb, arguments->seal);
  add_flag(*verb, "--json", arguments->as_json, "Print prompt and text as one JSON object");
  verb->footer(
      "Examples:\n"
      "  heed generate --model story --prompt \"The lighthouse\"\n"
      "  heed generate --model SmolLM2.gguf --chat \"Why is the sky blue?\"\n"
      "  heed generate --model SmolLM2.gguf < beginning.txt\n"
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
