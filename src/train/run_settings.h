// The settings of a run in its files, as JSON.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "heed/core/config.h"
#include "heed/train/training_settings.h"
#include "heed/train/translation_settings.h"
#include "heed/train/translator_training.h"
#include "models/settings.h"

namespace heed { inline namespace v0 { namespace train {

HEED_API nlohmann::json to_json(const TrainingSettings& settings);
HEED_API nlohmann::json to_json(const TranslationSettings& settings);
HEED_API nlohmann::json to_json(const EpochResult& result);

// Read and check settings. Throw std::runtime_error, which names `file`, if it holds none of
// heed's.
HEED_API TrainingSettings training_settings(const nlohmann::json& json,
                                            const std::filesystem::path& file, SettingNames names);
HEED_API TranslationSettings translation_settings(const nlohmann::json& json,
                                                  const std::filesystem::path& file,
                                                  SettingNames names);

}}}  // namespace heed::v0::train
