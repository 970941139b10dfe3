// The scores of a translator, as text and JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "heed/train/translator_scores.h"

namespace heed::cli {

// Returns for example "6 to 10".
std::string lengths_of(const tasks::LengthScore& group);

nlohmann::json to_json(const tasks::TranslationScore& score);

}  // namespace heed::cli
