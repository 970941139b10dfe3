#include "heed/train/training_settings.h"

#include <fmt/format.h>

#include <cmath>

#include "heed/core/error.h"
#include "models/settings.h"

namespace heed { inline namespace v0 { namespace train {

using models::check_setting;

void check_settings(const TrainingSettings& settings, SettingNames names) {
  check_setting("steps", settings.steps, {1, 100'000'000}, names);
  check_setting("batch", settings.batch, {1, 4096}, names);
  check_setting("save_every", settings.save_every, {1, 100'000'000}, names);
  if (!(settings.learning_rate > 0 && std::isfinite(settings.learning_rate))) {
    throw InvalidArgument(fmt::format("{} is {}, expected a positive number",
                                      models::name_of_setting("learning_rate", names),
                                      settings.learning_rate));
  }
}

nn::WarmupCosine learning_schedule(const TrainingSettings& settings) {
  constexpr double kWarmupShare = 0.05;
  constexpr double kFloorShare = 0.05;
  return {
      .peak = settings.learning_rate,
      .warmup_steps = static_cast<std::int64_t>(kWarmupShare * static_cast<double>(settings.steps)),
      .total_steps = settings.steps,
      .floor = kFloorShare * settings.learning_rate};
}

}}}  // namespace heed::v0::train
