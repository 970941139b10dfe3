// Checks settings of training and models from the command line.
#pragma once

#include <cstdint>
#include <string_view>

#include "heed/models/causal_config.h"
#include "heed/train/training_settings.h"
#include "heed/train/translation_settings.h"
#include "verbs.h"

namespace heed::cli {

// Makes messages of the library name settings by their options: "--d-model".
inline constexpr auto kOptionNames = models::SettingNames::kOptions;

// Throws UsageError naming `name` unless low ≤ value ≤ high.
void check_range(std::string_view name, std::int64_t value, std::int64_t low, std::int64_t high);

// Throw UsageError when numbers are out of range or do not fit together.
void check_given(const train::TrainingSettings& settings);
void check_given(const train::TranslationSettings& settings);
void check_given(const models::CausalConfig& config);

}  // namespace heed::cli
