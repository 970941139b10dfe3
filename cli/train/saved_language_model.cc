#include "train/saved_language_model.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "heed/io/safetensors.h"
#include "heed/nn/state_file.h"

namespace heed::cli {

SavedLanguageModel load_language_model(std::filesystem::path path) {
  if (std::filesystem::is_directory(path)) path /= "model.safetensors";
  Safetensors file = read_safetensors(path);
  const nlohmann::json settings = parse_settings(file.metadata["settings"], "lm", path);
  SavedLanguageModel saved{model_settings(settings, path),
                           Characters(text_setting(settings, "characters", path)), nullptr};
  if (saved.characters.size() != saved.sizes.vocab_size) {
    throw std::runtime_error(fmt::format("'{}' has {} characters for a vocabulary of {}",
                                         path.string(), saved.characters.size(),
                                         saved.sizes.vocab_size));
  }
  saved.model = std::make_unique<CausalModel>(saved.sizes);
  nn::load(path, *saved.model);
  return saved;
}

}  // namespace heed::cli
