// A causal model as a writer of texts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "heed/nn/past.h"
#include "heed/nn/search.h"
#include "train/causal_model.h"

namespace heed::cli {

// Continuations of one prompt, side by side. The model keeps the keys and values of what it has
// seen; texts share what they have in common. Where a whole context has been seen it begins anew
// with the second half, whose positions are others then. So each token costs as much as there are
// tokens in a context.
class TextWriter final : public nn::Writer<float> {
 public:
  // Of `prompt`, which is not empty, and what follows the model sees the last `context` tokens at
  // most. `nothing` is a past of one text of no tokens, on whose pool all of this is kept.
  TextWriter(CausalModel& model, std::span<const std::int32_t> prompt, std::int64_t context,
             nn::Past nothing);
  TextWriter(CausalModel& model, std::span<const std::int32_t> prompt, std::int64_t context)
      : TextWriter(model, prompt, context, model.make_past()) {}

  nn::ReservedTokens reserved() const override { return {}; }
  std::int64_t num_targets() const override { return static_cast<std::int64_t>(texts_.size()); }
  nn::NextScores<float> begin() override;
  nn::NextScores<float> go_on(std::span<const nn::NextToken> next) override;

 private:
  // The last `unseen` tokens of each text.
  nn::NextScores<float> read(std::int64_t unseen);

  CausalModel& model_;
  std::int64_t context_;
  nn::Past nothing_;
  nn::Past past_;
  std::vector<std::vector<std::int64_t>> texts_;  // of each the last tokens, at most a context
};

}  // namespace heed::cli
