#include "heed/models/generate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/float_environment.h"
#include "heed/core/cancellation.h"
#include "heed/core/elementary.h"
#include "heed/core/error.h"
#include "models/reading.h"
#include "models/sealing.h"
#include "text/literal_matcher.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// The number of bytes of a text that make up whole characters. Only an incomplete character may
// follow, whose other bytes are still to come. Bytes that begin no character count as whole.
std::size_t whole_characters(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size()); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0U) == 0x80U) continue;
    const std::size_t length = byte >= 0xF0U ? 4 : byte >= 0xE0U ? 3 : byte >= 0xC0U ? 2 : 1;
    return length > back ? text.size() - back : text.size();
  }
  return text.size();
}

// Ends a text before the first stop text that is complete.
class StopFinder {
 public:
  explicit StopFinder(const std::vector<std::string>& stop) {
    for (const std::string& text : stop) matchers_.push_back({text::LiteralMatcher(text), 0});
  }

  // Takes one more byte. Returns true if it completes a stop text; of several, held() is the
  // longest.
  bool take(char byte) {
    std::size_t longest = 0;
    held_ = 0;
    for (auto& [matcher, state] : matchers_) {
      state = matcher.after(state, byte);
      held_ = std::max(held_, state);
      if (state == matcher.pattern().size()) longest = std::max(longest, state);
    }
    if (longest > 0) held_ = longest;
    return longest > 0;
  }
  // The number of last bytes that are the stop text, or may be the beginning of one.
  std::size_t held() const noexcept { return held_; }

 private:
  struct Progress {
    text::LiteralMatcher matcher;
    std::size_t state;
  };
  std::vector<Progress> matchers_;
  std::size_t held_ = 0;
};

// The text so far, and the part of it that was passed to the caller.
class Text {
 public:
  Text(const text::Tokenizer& tokenizer, std::span<const std::int64_t> prompt,
       const GenerateOptions& options)
      : stops_(options.stop), on_text_(options.on_text), stream_(tokenizer.stream(prompt)) {}

  // Adds a token; returns false if the text ends there.
  bool add(std::int64_t id) {
    return append(stream_->add(id)) &&
           show(std::min(text_.size() - stops_.held(), whole_characters(text_)));
  }
  // Passes on the rest of the text.
  void finish() {
    if (reason_ != EndReason::kMaxTokens || !append(stream_->finish())) return;
    show(text_.size());
  }

  // The reason why the text ended; kMaxTokens if it did not.
  EndReason reason() const noexcept { return reason_; }
  std::string take() { return std::move(text_); }

 private:
  bool append(std::string_view piece) {
    for (const char byte : piece) {
      text_ += byte;
      if (!stops_.take(byte)) continue;
      text_.resize(text_.size() - stops_.held());
      show(text_.size());
      reason_ = EndReason::kStopText;
      return false;
    }
    return true;
  }

  bool show(std::size_t end) {
    if (end <= shown_ || !on_text_) return true;
    const bool goes_on = on_text_(std::string_view(text_).substr(shown_, end - shown_));
    shown_ = end;
    if (!goes_on) reason_ = EndReason::kCaller;
    return goes_on;
  }

  StopFinder stops_;
  const std::function<bool(std::string_view)>& on_text_;
  std::unique_ptr<text::DecodeStream> stream_;
  std::string text_;
  std::size_t shown_ = 0;  // bytes passed to the caller
  EndReason reason_ = EndReason::kMaxTokens;
};

bool has_id(const std::vector<std::int64_t>& ids, std::int64_t id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// True for each of the tokens that end a text.
bool is_end(const Model& model, const GenerateOptions& options, std::int64_t id) {
  return has_id(model.config().end_ids, id) || has_id(options.end_ids, id) ||
         model.tokenizer().special_tokens().end == id;
}

// The logits with bias and penalty, in the order and the type of transformers.
class Processor {
 public:
  Processor(std::span<const std::int64_t> prompt, const GenerateOptions& options)
      : options_(options), seen_(prompt.begin(), prompt.end()) {}

  void add(std::int64_t id) { seen_.insert(id); }

  std::span<const float> processed(std::span<const float> logits) {
    if (options_.logit_bias.empty() && options_.repetition_penalty == 1) return logits;
    scores_.assign(logits.begin(), logits.end());
    for (const auto& [id, bias] : options_.logit_bias) {
      scores_[static_cast<std::size_t>(id)] += static_cast<float>(bias);
    }
    const auto penalty = static_cast<float>(options_.repetition_penalty);
    for (const std::int64_t id : seen_) {
      float& score = scores_[static_cast<std::size_t>(id)];
      if (penalty != 1) score = score < 0 ? score * penalty : score / penalty;
    }
    return scores_;
  }

 private:
  const GenerateOptions& options_;
  std::set<std::int64_t> seen_;
  std::vector<float> scores_;
};

double log_probability(std::span<const float> logits, std::int64_t id) {
  const auto largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  double sum = 0;
  for (const float logit : logits) sum += elementary::exp(static_cast<double>(logit) - largest);
  const auto own = static_cast<double>(logits[static_cast<std::size_t>(id)]);
  return own - largest - elementary::log(sum);
}

void check_ids(const Model& model, const GenerateOptions& options) {
  for (const auto& [id, bias] : options.logit_bias) {
    if (id < 0 || id >= model.config().vocab_size) {
      throw InvalidArgument(fmt::format("generate: logit_bias has the token {}, expected 0 to {}",
                                        id, model.config().vocab_size - 1));
    }
    if (!(bias < std::numeric_limits<float>::infinity())) {
      throw InvalidArgument(
          fmt::format("generate: the logit_bias of token {} is {}, expected a number", id, bias));
    }
  }
  const double penalty = options.repetition_penalty;
  if (!(penalty > 0 && std::isfinite(penalty))) {
    throw InvalidArgument(fmt::format(
        "generate: repetition_penalty is {}, expected a number of more than 0", penalty));
  }
  if (options.kept == nullptr) return;
  if (options.seal != nullptr) {
    throw InvalidArgument("generate: a seal is of a text that begins with no kept text");
  }
  const KeptText& kept = *options.kept;
  if (kept.past && (kept.past->num_layers() != model.config().num_layers ||
                    kept.past->length() != static_cast<std::int64_t>(kept.ids.size()))) {
    throw InvalidArgument("generate: the kept text is not of this model");
  }
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

void check_generate(const Model& model, std::span<const std::int64_t> prompt,
                    const GenerateOptions& options) {
  if (!model.config().is_causal() || !model.has_head()) {
    throw InvalidArgument(fmt::format("generate: a model of architecture {} does not write",
                                      model.config().architecture));
  }
  if (prompt.empty()) throw InvalidArgument("generate: prompt has no tokens, expected at least 1");
  const auto length = static_cast<std::int64_t>(prompt.size());
  const ModelConfig& config = model.config();
  const std::int64_t positions =
      config.encoder ? config.encoder->max_positions : config.max_positions;
  if (length > positions) {
    throw InvalidArgument(
        fmt::format("generate: the prompt has {} tokens, the model's positions are {}: give a "
                    "shorter one",
                    length, positions));
  }
  if (options.max_tokens < 0) {
    throw InvalidArgument(
        fmt::format("generate: max_tokens is {}, expected at least 0", options.max_tokens));
  }
  for (const std::string& stop : options.stop) {
    if (stop.empty()) throw InvalidArgument("generate: a stop text is empty");
  }
  check_ids(model, options);
}

Generated generate(const Model& model, std::span<const std::int64_t> prompt,
                   const GenerateOptions& options) {
  const FloatEnvironment environment;
  check_generate(model, prompt, options);
  Generated result{.prompt_tokens = static_cast<std::int64_t>(prompt.size())};
  std::optional<TextSealer> sealer;
  if (options.seal != nullptr) sealer.emplace(model, prompt, options);
  TorchGenerator random(options.seed);
  const Clock::time_point start = Clock::now();
  Reading reading(model, prompt, options);
  result.kept_tokens = reading.length();
  Processor processor(reading.ids(), options);
  Tensor<float> hidden = reading.read_rest();
  result.prefill_seconds = seconds_since(start);
  Text text(model.tokenizer(), reading.ids(), options);
  const Clock::time_point decode = Clock::now();
  for (;;) {
    if (static_cast<std::int64_t>(result.ids.size()) >= options.max_tokens) break;
    check_cancelled();
    const Tensor<float> logits = model.logits(hidden);
    const std::int64_t id =
        choose_token(processor.processed(logits.elements()), options.sampling, random);
    if (sealer) sealer->add(logits.elements(), id);
    if (is_end(model, options, id)) {
      result.reason = EndReason::kEndToken;
      break;
    }
    result.ids.push_back(id);
    processor.add(id);
    if (options.log_probs) result.log_probs.push_back(log_probability(logits.elements(), id));
    if (!text.add(id)) break;
    if (reading.length() >= model.config().max_positions) {
      result.reason = EndReason::kContextFull;
      break;
    }
    hidden = reading.read(id);
  }
  result.decode_seconds = seconds_since(decode);
  text.finish();
  if (text.reason() != EndReason::kMaxTokens) result.reason = text.reason();
  result.text = text.take();
  if (sealer) *options.seal = sealer->finish(result.text, result.reason);
  if (options.kept != nullptr) std::move(reading).keep(*options.kept);
  return result;
}

Generated generate(const Model& model, std::string_view prompt, const GenerateOptions& options) {
  const FloatEnvironment environment;
  return generate(model, model.tokenizer().ids(prompt), options);
}

}}}  // namespace heed::v0::models
