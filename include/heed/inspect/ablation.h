/// Ablation: how much a model changes when heads are switched off, compared with heads chosen at
/// random.
///
/// The weights of a head show which tokens it reads, not whether the model needs it. Michel et al.,
/// "Are Sixteen Heads Really Better than One?", 2019, switch heads off and measure the loss.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "heed/core/config.h"
#include "heed/inspect/model_heads.h"
#include "heed/models/model.h"

namespace heed { inline namespace v0 { namespace inspect {

/// Measurements of a model while some heads are off.
struct AblationOutcome {
  std::vector<models::HeadIndex> heads;  ///< the heads that are off, in rising order
  /// Only of a causal model with a head for its vocabulary: the mean loss in nats, over all tokens
  /// of the texts but the first of each, and over the repeated tokens from the first repeat on.
  double text_loss = 0;
  double repeated_loss = 0;
  /// The cosine between a token's final hidden states with all heads and without these, as a mean
  /// over all tokens of the texts.
  double cosine = 1;
};

/// The result of ablate_heads().
struct Ablation {
  bool has_losses = false;
  AblationOutcome all;                  ///< no head is off
  AblationOutcome chosen;               ///< the given heads are off
  std::vector<AblationOutcome> random;  ///< as many random other heads are off, one entry per draw

  /// Mean and standard deviation (of a sample; 0 for one) of a number of the random outcomes.
  struct Spread {
    double mean = 0;
    double deviation = 0;
  };
  HEED_API Spread spread(double AblationOutcome::*number) const;
};

/// The options of ablate_heads().
struct AblationOptions {
  std::int64_t draws = 5;
  std::uint64_t seed = 0;
  /// Called after each outcome.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

/// Measures a model with the given heads off, and several times with as many other heads off, drawn
/// at random.
/// @param scores of the same model: its texts and repeated tokens are read again
/// @throws InvalidArgument when a head does not exist or is given twice, none is given, or there
/// are fewer other heads than must be drawn.
HEED_API Ablation ablate_heads(const models::Model& model, const HeadScores& scores,
                               std::vector<models::HeadIndex> heads,
                               const AblationOptions& options = {});

}}}  // namespace heed::v0::inspect
