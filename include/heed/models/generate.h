/// Text generation with causal models.
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
#include "heed/models/seal.h"

namespace heed { inline namespace v0 { namespace models {

/// How the next token is sampled from its logits.
struct Sampling {
  double temperature = 0;  ///< logits are divided by it; 0: always the most likely token
  std::int64_t top_k = 0;  ///< only this number of most likely tokens; 0: all
  double top_p = 1;        ///< only the most likely tokens, up to this sum of probabilities
};

/// Samples a token and returns its index; the first of equal ones. The same numbers of `random`
/// give the same choice. @param logits [vocab_size]
/// @throws InvalidArgument when an option is out of range, or a logit is NaN or all are −∞.
HEED_API std::int64_t choose_token(std::span<const float> logits, const Sampling& sampling,
                                   TorchGenerator& random);

/// The options of generate().
struct GenerateOptions {
  std::int64_t max_tokens = 100;
  Sampling sampling = {};
  std::uint64_t seed = 0;
  /// The text ends before the first occurrence of any of these.
  std::vector<std::string> stop = {};
  PastOptions past = {};
  /// Called with each new piece of the text, in whole characters; returning false ends the text.
  std::function<bool(std::string_view piece)> on_text = {};
  /// Where given, receives the seal of prompt, options, logits and text. The model's files are
  /// hashed first (Model::sha256).
  Seal* seal = nullptr;
};

/// The reason for the end of a text.
enum class EndReason { kMaxTokens, kEndToken, kStopText, kContextFull, kCaller };

/// The name of a reason: "max_tokens", "end_token", "stop_text", "context_full" or "caller".
HEED_API std::string_view to_string(EndReason reason);

/// A generated text.
struct Generated {
  std::vector<std::int64_t> ids = {};  ///< without the token that ended it
  /// The text after the prompt, as from Tokenizer::stream(): with the space before its first word.
  std::string text = {};
  EndReason reason = EndReason::kMaxTokens;
  std::int64_t prompt_tokens = 0;
  double prefill_seconds = 0;  ///< time to read the prompt
  double decode_seconds = 0;   ///< time after that
};

/// Continues the tokens of a prompt. A token that the tokenizer does not have, because a model may
/// have more tokens than its tokenizer, adds no text. If cancelled (heed/core/cancellation.h), it
/// stops within milliseconds, also while it reads the prompt.
/// @throws InvalidArgument when the model is not causal or has no output projection, the prompt is
/// empty or longer than the model's positions, or an option is out of range.
HEED_API Generated generate(const Model& model, std::span<const std::int64_t> prompt,
                            const GenerateOptions& options = {});
/// generate() for a prompt as text. @throws InvalidArgument also when it is not valid UTF-8.
HEED_API Generated generate(const Model& model, std::string_view prompt,
                            const GenerateOptions& options = {});
/// The checks that generate() makes first. @throws InvalidArgument as generate().
HEED_API void check_generate(const Model& model, std::span<const std::int64_t> prompt,
                             const GenerateOptions& options);

}}}  // namespace heed::v0::models
