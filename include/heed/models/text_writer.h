/// Texts that a CausalTransformer writes: drawn token by token, or the likeliest.
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

/// Continuations of one prompt, side by side, for nn::greedy_search() and nn::beam_search(). The
/// model keeps the keys and values of what it has seen; texts share what they have in common. Where
/// a whole context has been seen it begins anew with the second half, whose positions are others
/// then. So each token costs as much as there are tokens in a context.
class HEED_API TextWriter final : public nn::Writer<float> {
 public:
  /// Of `prompt`, and what follows, the model sees the last `context` tokens at most.
  /// @param nothing a past of one text of no tokens, on whose pool all of this is kept
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
  // The last `unseen` tokens of each text.
  nn::NextScores<float> read(std::int64_t unseen);

  CausalTransformer& model_;
  std::int64_t context_;
  nn::Past nothing_;
  nn::Past past_;
  std::vector<std::vector<std::int64_t>> texts_;  // of each the last tokens, at most a context
};

/// How a text is continued.
struct TextSampling {
  std::int64_t tokens = 200;
  double temperature = 0.8;   ///< logits are divided by it; 0: always the likeliest token
  std::int64_t context = 64;  ///< how many of the last tokens the model sees at most
  std::uint64_t seed = 0;
};

/// The tokens after `prompt`, each drawn with the probabilities softmax(logits / temperature).
/// @throws InvalidArgument as TextWriter.
HEED_API std::vector<std::int64_t> continue_text(CausalTransformer& model,
                                                 std::span<const std::int32_t> prompt,
                                                 const TextSampling& sampling);

/// How the likeliest text is looked for.
struct TextBeam {
  std::int64_t beam = 1;  ///< hypotheses that are followed at once
  std::int64_t tokens = 200;
  std::int64_t context = 64;  ///< how many of the last tokens the model sees at most
};

/// The likeliest tokens after `prompt` that a beam search finds. Its hypotheses share the keys and
/// values of what they have in common. @throws InvalidArgument as TextWriter.
HEED_API std::vector<std::int64_t> likeliest_text(CausalTransformer& model,
                                                  std::span<const std::int32_t> prompt,
                                                  const TextBeam& search);

/// The same for texts, by a tokenizer whose ids are the model's tokens: what is written after
/// `prompt`. @throws InvalidArgument also as tokenizer.encode().
HEED_API std::string continue_text(CausalTransformer& model, const text::Tokenizer& tokenizer,
                                   std::string_view prompt, const TextSampling& sampling);
HEED_API std::string likeliest_text(CausalTransformer& model, const text::Tokenizer& tokenizer,
                                    std::string_view prompt, const TextBeam& search);

}}}  // namespace heed::v0::models
