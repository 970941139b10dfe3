// A model that `heed train lm` has saved, as the verbs that use one read it.
#pragma once

#include <filesystem>
#include <memory>

#include "train/causal_model.h"
#include "train/characters.h"
#include "train/settings.h"

namespace heed::cli {

struct SavedLanguageModel {
  ModelSettings sizes;
  Characters characters;
  std::unique_ptr<CausalModel> model;
};

// From the folder that --save named, or a file of it. Throws std::runtime_error, naming the file,
// when it is of another task or does not fit together.
SavedLanguageModel load_language_model(std::filesystem::path path);

}  // namespace heed::cli
