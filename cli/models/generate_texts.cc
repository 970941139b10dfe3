#include "models/generate_texts.h"

#include <fmt/format.h>

#include <atomic>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/core/cancellation.h"
#include "heed/core/error.h"
#include "heed/viz/terminal.h"
#include "models/conversation.h"
#include "models/sealing.h"
#include "train/interrupt.h"

namespace heed::cli {

namespace {

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
  const std::int64_t read = text.prompt_tokens - text.kept_tokens;
  return fmt::format(
      "read {} tokens in {:.2f} s ({:.0f} a second), wrote {} in {:.2f} s ({:.1f} a second); "
      "ended by {}",
      read, text.prefill_seconds, rate(read, text.prefill_seconds), written, text.decode_seconds,
      rate(written, text.decode_seconds), to_string(text.reason));
}

void print_text_json(const TextRequest& request, const models::Generated& text,
                     const SealedRun& sealed) {
  nlohmann::json json{{"prompt", request.prompt},
                      {"text", text.text},
                      {"token_ids", text.ids},
                      {"reason", to_string(text.reason)},
                      {"prompt_tokens", text.prompt_tokens},
                      {"kept_tokens", text.kept_tokens},
                      {"prefill_seconds", text.prefill_seconds},
                      {"decode_seconds", text.decode_seconds}};
  if (request.options.log_probs) json["log_probs"] = text.log_probs;
  if (text.reason != models::EndReason::kCaller) sealed.add_to(json);
  std::cout << json.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace) << '\n';
}

std::vector<std::int64_t> prompt_ids(const models::Model& model, const TextRequest& request) {
  const text::Tokenizer& tokenizer = model.tokenizer();
  // A user's text contains no special tokens; only the chat template adds them.
  if (!request.is_chat) {
    return tokenizer.ids(request.prompt, {.parse_special_tokens = false});
  }
  std::vector<text::ChatMessage> messages;
  if (!request.system.empty()) messages.push_back({"system", request.system});
  messages.push_back({"user", request.prompt});
  return tokenizer.encode_chat(messages).ids;
}

// The log-probability of each token.
void print_log_probs(const models::Model& model, const models::Generated& text) {
  for (std::size_t i = 0; i < text.log_probs.size(); ++i) {
    std::cout << fmt::format("{:10.4f}  {}\n", text.log_probs[i],
                             sanitize_for_terminal(model.tokenizer().label(text.ids[i])));
  }
}

// Cancels the reading of a prompt after a signal. Writing is interrupted between tokens only.
class StopOnSignal final : public Cancellation {
 public:
  void poll() noexcept override {
    if (!has_text && InterruptGuard::signal() != 0) request();
  }
  std::atomic<bool> has_text = false;
};

// Generates a text by `generate`, which takes the options; prints it as it is written and, on
// stderr, the speed.
template <class Generate>
models::Generated written_text(const TextRequest& request, models::GenerateOptions options,
                               StopOnSignal& stop, const Generate& generate) {
  stop.has_text = false;
  const bool is_shown = !request.as_json;
  options.on_text = [&stop, is_shown](std::string_view piece) {
    stop.has_text = true;
    if (is_shown) print_piece(piece);
    return InterruptGuard::signal() == 0;
  };
  models::Generated text = generate(options);
  if (is_shown) {
    std::cout << std::endl;
    std::cerr << speed_line(text) << '\n';
  }
  return text;
}

[[noreturn]] void fail_interrupted() {
  throw Interrupted(InterruptGuard::signal(), "interrupted; the text so far is above");
}

// Writes one text behind the prompt, or several, which share the keys and values of the prompt.
void write_texts(TextRequest request, const models::Model& model) {
  SealedRun sealed(request.seal, models::SealKind::kGenerate);
  const std::vector<std::int64_t> prompt = prompt_ids(model, request);
  if (request.is_chat) request.options.end_ids = end_ids_of_template(model);
  models::check_generate(model, prompt, request.options);
  const InterruptGuard guard;
  StopOnSignal stop;
  const CancellationScope scope(&stop);
  request.options.seal = sealed.seal();
  if (sealed.seal() != nullptr) {
    sealed.hash(model);
    sealed.check_inputs(models::begun_seal(model, prompt, request.options));
  }
  models::KeptText kept;
  if (request.count > 1) request.options.kept = &kept;
  for (std::int64_t i = 0; i < request.count; ++i) {
    if (!request.as_json && i > 0) std::cout << "---\n";
    if (!request.as_json && !request.is_chat) print_piece(request.prompt);
    const models::Generated text =
        written_text(request, request.options, stop, [&](const models::GenerateOptions& options) {
          return models::generate(model, prompt, options);
        });
    if (request.as_json) print_text_json(request, text, sealed);
    if (!request.as_json) print_log_probs(model, text);
    if (InterruptGuard::signal() != 0) fail_interrupted();
    ++request.options.seed;
  }
  sealed.finish(request.as_json);
}

// Answers each message of standard input. Ctrl-C ends an answer in a terminal, and otherwise all.
void answer_messages(TextRequest request, const models::Model& model) {
  const SealedRun no_seal({}, models::SealKind::kGenerate);
  request.options.end_ids = end_ids_of_template(model);
  Conversation conversation(model, request.system);
  take_turns(conversation, [&](const std::string& message, bool is_terminal) {
    const InterruptGuard guard;
    StopOnSignal stop;
    const CancellationScope scope(&stop);
    request.prompt = message;
    try {
      const models::Generated text =
          written_text(request, request.options, stop, [&](const models::GenerateOptions& options) {
            return conversation.answer(message, options);
          });
      if (request.as_json) print_text_json(request, text, no_seal);
      if (!request.as_json) print_log_probs(model, text);
    } catch (const Cancelled&) {
      if (!is_terminal) throw;
      std::cout << std::endl;
    }
    if (!is_terminal && InterruptGuard::signal() != 0) fail_interrupted();
    ++request.options.seed;
  });
}

}  // namespace

void write_text(const TextRequest& request) try {
  const models::Model model = models::load(request.model);
  if (request.has_turns) {
    answer_messages(request, model);
  } else {
    write_texts(request, model);
  }
} catch (const Cancelled&) {
  if (!request.as_json) std::cout << std::endl;
  throw Interrupted(InterruptGuard::signal(), "interrupted while it read the prompt");
}

}  // namespace heed::cli
