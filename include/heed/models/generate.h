/// Text generation with causal models.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/random.h"
#include "heed/models/model.h"
#include "heed/models/seal.h"
#include "heed/nn/past.h"

namespace heed { inline namespace v0 { namespace models {

/// How the next token is sampled from its logits.
struct Sampling {
  double temperature = 0;  ///< logits are divided by it; 0: always the most likely token
  std::int64_t top_k = 0;  ///< only this number of most likely tokens; 0: all
  double top_p = 1;        ///< only the most likely tokens, up to this sum of probabilities
  double min_p = 0;  ///< only tokens that have this share of the probability of the most likely one
};

/// Samples a token and returns its index; the first of equal ones. The same numbers of `random`
/// give the same choice. @param logits [vocab_size]
/// @throws InvalidArgument when an option is out of range, or a logit is NaN or all are −∞.
HEED_API std::int64_t choose_token(std::span<const float> logits, const Sampling& sampling,
                                   TorchGenerator& random);

/// The tokens of a text with their keys and values, for texts that begin like it.
struct KeptText {
  std::vector<std::int64_t> ids = {};
  std::optional<nn::Past> past = {};
};

/// The options of generate(). Logits are changed in this order, as in transformers: bias, penalty,
/// temperature, top_k, top_p, min_p.
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
  /// Logits of tokens that the text or its prompt has are divided by it where they are positive and
  /// multiplied where they are negative; 1: none.
  double repetition_penalty = 1;
  std::vector<std::pair<std::int64_t, double>> logit_bias =
      {};                                  ///< tokens, what is added to their logits
  std::vector<std::int64_t> end_ids = {};  ///< tokens that end the text, besides those of the model
  bool log_probs = false;                  ///< whether Generated::log_probs is wanted
  /// Where given, the tokens that prompt and kept text begin with are not read again, and the text
  /// with all that was read afterwards replaces it. It belongs to one model and one kind of past.
  KeptText* kept = nullptr;
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
  double prefill_seconds = 0;    ///< time to read the prompt
  double decode_seconds = 0;     ///< time after that
  std::int64_t kept_tokens = 0;  ///< tokens of the prompt that were not read, as they were kept
  /// The natural logarithm of the probability of each of `ids` that the model gave it, before the
  /// options changed it.
  std::vector<double> log_probs = {};
};

/// Continues the tokens of a prompt. A token that the tokenizer does not have, because a model may
/// have more tokens than its tokenizer, adds no text. If cancelled (heed/core/cancellation.h), it
/// stops within milliseconds, also while it reads the prompt.
/// @throws InvalidArgument when the model is not causal or has no output projection, the prompt is
/// empty or longer than the model's positions, an option is out of range, or a seal is wanted of a
/// text that begins with a kept one, whose bits depend on how it was read.
HEED_API Generated generate(const Model& model, std::span<const std::int64_t> prompt,
                            const GenerateOptions& options = {});
/// generate() for a prompt as text. @throws InvalidArgument also when it is not valid UTF-8.
HEED_API Generated generate(const Model& model, std::string_view prompt,
                            const GenerateOptions& options = {});
/// The checks that generate() makes first. @throws InvalidArgument as generate().
HEED_API void check_generate(const Model& model, std::span<const std::int64_t> prompt,
                             const GenerateOptions& options);

}}}  // namespace heed::v0::models
