#include "heed/models/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "heed/cancellation.h"
#include "heed/error.h"

namespace heed::inline v0::models {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// How many bytes of a text are whole characters: what follows is the beginning of one, whose other
// bytes are still to come. Bytes that begin no character count as whole.
std::size_t whole_characters(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;
    const std::size_t length = byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : byte >= 0xC0U ? 2 : 1;
    return length > back ? text.size() - back : text.size();
  }
  return text.size();
}

// The text of the tokens so far, and how much of it may be shown.
class Text {
 public:
  Text(const text::Tokenizer& tokenizer, const GenerateOptions& options)
      : tokenizer_(tokenizer), options_(options) {}

  // Takes the tokens, of which the last is new. Whether the text goes on.
  bool add(std::span<const std::int64_t> ids) {
    text_ = tokenizer_.decode(ids);
    if (cut_at_stop()) {
      reason_ = EndReason::kStopText;
      show(text_.size());
      return false;
    }
    return show(std::min(whole_characters(text_), before_beginning_of_stop()));
  }
  // Shows what is left.
  void finish() { show(text_.size()); }

  EndReason reason() const noexcept { return reason_; }
  std::string take() { return std::move(text_); }

 private:
  bool cut_at_stop() {
    std::size_t first = std::string::npos;
    for (const std::string& stop : options_.stop) {
      first = std::min(first, text_.find(stop, std::min(shown_, text_.size())));
    }
    if (first == std::string::npos) return false;
    text_.resize(first);
    return true;
  }

  // Where the longest beginning of a stop text stands at the end: it may be completed.
  std::size_t before_beginning_of_stop() const {
    std::size_t end = text_.size();
    for (const std::string& stop : options_.stop) {
      for (std::size_t length = std::min(stop.size() - 1, text_.size()); length > 0; --length) {
        if (!text_.ends_with(std::string_view(stop).substr(0, length))) continue;
        end = std::min(end, text_.size() - length);
        break;
      }
    }
    return end;
  }

  bool show(std::size_t end) {
    if (end <= shown_ || !options_.on_text) return true;
    const bool goes_on = options_.on_text(std::string_view(text_).substr(shown_, end - shown_));
    shown_ = end;
    if (!goes_on) reason_ = EndReason::kCaller;
    return goes_on;
  }

  const text::Tokenizer& tokenizer_;
  const GenerateOptions& options_;
  std::string text_;
  std::size_t shown_ = 0;  // bytes
  EndReason reason_ = EndReason::kMaxTokens;
};

void check(const Model& model, std::span<const std::int64_t> prompt,
           const GenerateOptions& options) {
  if (!model.config().is_causal() || !model.has_head()) {
    throw InvalidArgument(fmt::format("generate: a model of architecture {} does not write",
                                      model.config().architecture));
  }
  if (prompt.empty()) throw InvalidArgument("generate: prompt has no tokens, expected at least 1");
  if (options.max_tokens < 0) {
    throw InvalidArgument(
        fmt::format("generate: max_tokens is {}, expected at least 0", options.max_tokens));
  }
  for (const std::string& stop : options.stop) {
    if (stop.empty()) throw InvalidArgument("generate: a stop text is empty");
  }
}

// Of a model that ends texts by several tokens, each.
bool is_end(const Model& model, std::int64_t id) {
  const std::vector<std::int64_t>& ends = model.config().end_ids;
  return std::find(ends.begin(), ends.end(), id) != ends.end() ||
         model.tokenizer().special_tokens().end == id;
}

Tensor<float> last_row(const Tensor<float>& hidden) {
  const std::int64_t rows = hidden.extent(0);
  return to_tensor(hidden.view().slice(0, rows - 1, rows));
}

}  // namespace

std::string_view to_string(EndReason reason) {
  switch (reason) {
    case EndReason::kMaxTokens:
      return "max_tokens";
    case EndReason::kEndToken:
      return "end_token";
    case EndReason::kStopText:
      return "stop_text";
    case EndReason::kContextFull:
      return "context_full";
    case EndReason::kCaller:
      break;
  }
  return "caller";
}

Generated generate(const Model& model, std::span<const std::int64_t> prompt,
                   const GenerateOptions& options) {
  check(model, prompt, options);
  Generated result{.prompt_tokens = static_cast<std::int64_t>(prompt.size())};
  TorchGenerator random(options.seed);
  Text text(model.tokenizer(), options);
  nn::Past past = model.make_past(options.past);
  const Clock::time_point start = Clock::now();
  Tensor<float> hidden = last_row(model.forward(prompt, past));
  result.prefill_seconds = seconds_since(start);
  const Clock::time_point decode = Clock::now();
  for (;;) {
    if (static_cast<std::int64_t>(result.ids.size()) >= options.max_tokens) break;
    check_cancelled();
    const Tensor<float> logits = model.logits(hidden);
    const std::int64_t id = choose_token(logits.elements(), options.sampling, random);
    if (is_end(model, id)) {
      result.reason = EndReason::kEndToken;
      break;
    }
    result.ids.push_back(id);
    if (!text.add(result.ids)) {
      result.reason = text.reason();
      break;
    }
    if (past.length() >= model.config().max_positions) {
      result.reason = EndReason::kContextFull;
      break;
    }
    hidden = model.forward(std::span(&id, 1), past);
  }
  result.decode_seconds = seconds_since(decode);
  text.finish();
  result.text = text.take();
  return result;
}

Generated generate(const Model& model, std::string_view prompt, const GenerateOptions& options) {
  return generate(model, model.tokenizer().ids(prompt), options);
}

}  // namespace heed::inline v0::models
