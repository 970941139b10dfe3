/// Whether heads matter: what changes when they are switched off, beside others chosen at random.
///
/// A pattern of weights says where a head looks, not what for. Michel et al., "Are Sixteen Heads
/// Really Better than One?", 2019, switch heads off and measure.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "heed/core/config.h"
#include "heed/inspect/model_heads.h"
#include "heed/models/model.h"

namespace heed { inline namespace v0 { namespace inspect {

/// How a model does while some heads are off.
struct AblationOutcome {
  std::vector<models::HeadIndex> heads;  ///< off, in rising order
  /// Of a causal model with a head: the mean loss in nats, over all tokens of the texts but the
  /// first of each, and over those of the repeated tokens that were there before.
  double text_loss = 0;
  double repeated_loss = 0;
  /// The mean over all tokens of the texts of the cosine between their final hidden states with all
  /// heads and without these.
  double cosine = 1;
};

struct Ablation {
  bool has_losses = false;
  AblationOutcome all;                  ///< no head is off
  AblationOutcome chosen;               ///< those that were named
  std::vector<AblationOutcome> random;  ///< as many others, drawn anew each time

  /// Mean and standard deviation (of a sample; 0 of one) of a number of the random outcomes.
  struct Spread {
    double mean = 0;
    double deviation = 0;
  };
  HEED_API Spread spread(double AblationOutcome::*number) const;
};

struct AblationOptions {
  std::int64_t draws = 5;
  std::uint64_t seed = 0;
  /// Called after each outcome.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

/// Switches heads off, and as many of the others, drawn at random, several times.
/// @param scores of the same model: its texts and repeated tokens are read again
/// @throws InvalidArgument when a head does not exist or is named twice, none is named, or there
/// are fewer others than are to be drawn.
HEED_API Ablation ablate_heads(const models::Model& model, const HeadScores& scores,
                               std::vector<models::HeadIndex> heads,
                               const AblationOptions& options = {});

}}}  // namespace heed::v0::inspect
