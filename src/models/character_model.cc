#include "heed/models/character_model.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "heed/io/safetensors.h"
#include "heed/nn/state_file.h"
#include "models/settings_json.h"

namespace heed { inline namespace v0 { namespace models {

CharacterModel load_character_model(std::filesystem::path path, SettingNames names) {
  if (std::filesystem::is_directory(path)) path /= "model.safetensors";
  Safetensors file = read_safetensors(path);
  const nlohmann::json settings = parse_settings(file.metadata["settings"], "lm", path);
  CharacterModel saved{causal_config(settings, path, names),
                       text::Characters(text_setting(settings, "characters", path)), nullptr};
  if (saved.characters.size() != saved.config.vocab_size) {
    throw std::runtime_error(fmt::format("'{}' has {} characters for a vocabulary of {}",
                                         path.string(), saved.characters.size(),
                                         saved.config.vocab_size));
  }
  saved.model = std::make_unique<CausalTransformer>(saved.config);
  nn::load(path, *saved.model);
  return saved;
}

std::string continue_text(const CharacterModel& model, std::string_view prompt,
                          const TextSampling& sampling) {
  TextSampling within = sampling;
  within.context = model.config.context;
  return continue_text(*model.model, model.characters, prompt, within);
}

std::string likeliest_text(const CharacterModel& model, std::string_view prompt,
                           const TextBeam& search) {
  TextBeam within = search;
  within.context = model.config.context;
  return likeliest_text(*model.model, model.characters, prompt, within);
}

}}}  // namespace heed::v0::models
