#include "models/write_text.h"

#include <fmt/format.h>

#include <atomic>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "heed/core/cancellation.h"
#include "heed/viz/terminal.h"
#include "models/trained_model.h"
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
  return fmt::format(
      "read {} tokens in {:.2f} s ({:.0f} a second), wrote {} in {:.2f} s ({:.1f} a second); "
      "ended by {}",
      text.prompt_tokens, text.prefill_seconds, rate(text.prompt_tokens, text.prefill_seconds),
      written, text.decode_seconds, rate(written, text.decode_seconds), to_string(text.reason));
}

void print_text_json(const TextRequest& request, const models::Generated& text) {
  const nlohmann::json json{{"prompt", request.prompt},
                            {"text", text.text},
                            {"token_ids", text.ids},
                            {"reason", to_string(text.reason)},
                            {"prompt_tokens", text.prompt_tokens},
                            {"prefill_seconds", text.prefill_seconds},
                            {"decode_seconds", text.decode_seconds}};
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

}  // namespace

void write_text(TextRequest request) try {
  const models::Model model = models::load(request.model);
  const std::vector<std::int64_t> prompt = prompt_ids(model, request);
  models::check_generate(model, prompt, request.options);
  const InterruptGuard guard;
  StopOnSignal stop;
  const CancellationScope scope(&stop);
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
    print_text_json(request, text);
  }
  if (InterruptGuard::signal() != 0) {
    throw Interrupted(InterruptGuard::signal(), "interrupted; the text so far is above");
  }
} catch (const Cancelled&) {
  if (!request.as_json) std::cout << std::endl;
  throw Interrupted(InterruptGuard::signal(), "interrupted while it read the prompt");
}

}  // namespace heed::cli
