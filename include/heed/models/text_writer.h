/// Text generation with a CausalTransformer: sampled, or by beam search.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/config.h"
#include "heed/models/causal_transformer.h"
#include "heed/nn/past.h"
#include "heed/nn/search.h"
#include "heed/text/tokenizer.h"

namespace heed { inline namespace v0 { namespace models {

/// Parallel continuations of one prompt, for nn::greedy_search() and nn::beam_search(). The model
/// caches the keys and values of its tokens; texts share those of common beginnings. When the
/// context is full, it starts again with the second half of it, at new positions. The time per
/// token is proportional to the tokens in a context.
class HEED_API TextWriter final : public nn::Writer<float> {
 public:
  /// The model sees at most the last `context` tokens of `prompt` and its continuation.
  /// @param nothing a past of one text without tokens, whose pool is used for all caches
  /// @throws InvalidArgument when the prompt is empty, or context not in [1, model.max_length()].
  TextWriter(CausalTransformer& model, std::span<const std::int32_t> prompt, std::int64_t context,
             nn::Past nothing);
  TextWriter(CausalTransformer& model, std::span<const std::int32_t> prompt, std::int64_t context)
      : TextWriter(model, prompt, context, model.make_past()) {}

  nn::ReservedTokens reserved() const override { return {}; }
  std::int64_t num_targets() const override { return static_cast<std::int64_t>(texts_.size()); }
  nn::NextScores<float> begin() override;
  nn::NextScores<float> go_on(std::span<const nn::NextToken> next) override;

 private:
  // Reads the last `unseen` tokens of each text.
  nn::NextScores<float> read(std::int64_t unseen);

  CausalTransformer& model_;
  std::int64_t context_;
  nn::Past nothing_;
  nn::Past past_;
  std::vector<std::vector<std::int64_t>> texts_;  // the last tokens of each, at most a context
};

/// The options of continue_text().
struct TextSampling {
  std::int64_t tokens = 200;
  double temperature = 0.8;   ///< logits are divided by it; 0: always the most likely token
  std::int64_t context = 64;  ///< the most tokens that the model sees
  std::uint64_t seed = 0;
};

/// The tokens after `prompt`, each drawn with the probabilities softmax(logits / temperature).
/// @throws InvalidArgument as TextWriter.
HEED_API std::vector<std::int64_t> continue_text(CausalTransformer& model,
                                                 std::span<const std::int32_t> prompt,
                                                 const TextSampling& sampling);

/// The options of likeliest_text().
struct TextBeam {
  std::int64_t beam = 1;  ///< hypotheses that are followed at the same time
  std::int64_t tokens = 200;
  std::int64_t context = 64;  ///< the most tokens that the model sees
};

/// The most likely tokens after `prompt` that a beam search finds. Its hypotheses share the keys
/// and values of common beginnings. @throws InvalidArgument as TextWriter.
HEED_API std::vector<std::int64_t> likeliest_text(CausalTransformer& model,
                                                  std::span<const std::int32_t> prompt,
                                                  const TextBeam& search);

/// Both functions for texts: the continuation of `prompt`, by a tokenizer whose ids are the model's
/// tokens. @throws InvalidArgument also as tokenizer.encode().
HEED_API std::string continue_text(CausalTransformer& model, const text::Tokenizer& tokenizer,
                                   std::string_view prompt, const TextSampling& sampling);
HEED_API std::string likeliest_text(CausalTransformer& model, const text::Tokenizer& tokenizer,
                                    std::string_view prompt, const TextBeam& search);

}}}  // namespace heed::v0::models
