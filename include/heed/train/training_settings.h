/// Settings of training runs.
#pragma once

#include <cstdint>

#include "heed/core/config.h"
#include "heed/models/causal_config.h"
#include "heed/nn/optimizer.h"

namespace heed { inline namespace v0 { namespace train {

using models::SettingNames;

/// The settings that all training runs have.
struct TrainingSettings {
  std::int64_t steps = 1000;  ///< the number of batches
  std::int64_t batch = 16;    ///< sequences in a batch
  double learning_rate = 3e-3;
  std::uint64_t seed = 0;         ///< of parameters and batches
  std::int64_t save_every = 100;  ///< steps between checkpoints
};

/// @throws InvalidArgument naming the setting when a number is out of range.
HEED_API void check_settings(const TrainingSettings& settings,
                             SettingNames names = SettingNames::kMembers);

/// The learning rates of every training: a warm-up over the first twentieth of the steps to
/// learning_rate, then half a cosine down to a twentieth of it. Small models are not sensitive to
/// these fractions.
HEED_API nn::WarmupCosine learning_schedule(const TrainingSettings& settings);

}}}  // namespace heed::v0::train
