/// Texts that a causal model writes.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/random.h"
#include "heed/models/model.h"

namespace heed { inline namespace v0 { namespace models {

/// How the next token is chosen from its logits.
struct Sampling {
  double temperature = 0;  ///< logits are divided by it; 0: always the likeliest token
  std::int64_t top_k = 0;  ///< only the so many likeliest tokens; 0: all
  double top_p = 1;        ///< only the likeliest tokens whose probabilities sum up to this
};

/// The index of the chosen token; of equal ones the first. The same numbers of `random` give the
/// same choice. @param logits [vocab_size]
/// @throws InvalidArgument when an option means nothing, or a logit is NaN or all are −∞.
HEED_API std::int64_t choose_token(std::span<const float> logits, const Sampling& sampling,
                                   TorchGenerator& random);

/// How a text is written.
struct GenerateOptions {
  std::int64_t max_tokens = 100;
  Sampling sampling = {};
  std::uint64_t seed = 0;
  /// The text ends as soon as one of these stands in it, and before it.
  std::vector<std::string> stop = {};
  PastOptions past = {};
  /// Called with each piece of the text as it comes, in whole characters; false ends the text.
  std::function<bool(std::string_view piece)> on_text = {};
};

/// Why a text ended.
enum class EndReason { kMaxTokens, kEndToken, kStopText, kContextFull, kCaller };

/// "max_tokens", "end_token", "stop_text", "context_full", "caller".
HEED_API std::string_view to_string(EndReason reason);

/// A text that was written.
struct Generated {
  std::vector<std::int64_t> ids = {};  ///< without the token that ended it
  /// What follows the prompt's text, as Tokenizer::stream() gives it: with the space before its
  /// first word.
  std::string text = {};
  EndReason reason = EndReason::kMaxTokens;
  std::int64_t prompt_tokens = 0;
  double prefill_seconds = 0;  ///< until the prompt was read
  double decode_seconds = 0;   ///< from there to the end
};

/// Goes on after the tokens of a prompt. A token that the tokenizer does not know, for a model may
/// have more than its tokenizer, stands for no text. Cancelled (heed/core/cancellation.h) it stops
/// within milliseconds, while it reads the prompt too.
/// @throws InvalidArgument when the model is not causal or has no head, the prompt is empty or does
/// not fit into the model's positions, or an option means nothing.
HEED_API Generated generate(const Model& model, std::span<const std::int64_t> prompt,
                            const GenerateOptions& options = {});
/// The same of a text. @throws InvalidArgument also when it is not valid UTF-8.
HEED_API Generated generate(const Model& model, std::string_view prompt,
                            const GenerateOptions& options = {});
/// What generate() checks before it reads the prompt. @throws InvalidArgument as generate().
HEED_API void check_generate(const Model& model, std::span<const std::int64_t> prompt,
                             const GenerateOptions& options);

}}}  // namespace heed::v0::models
