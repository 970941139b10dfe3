/// Models of characters that `heed train lm` or train::train_characters() saved.
///
///     const auto saved = heed::models::load_character_model("story");
///     std::cout << heed::models::continue_text(saved, "The ");
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "heed/core/config.h"
#include "heed/models/causal_config.h"
#include "heed/models/causal_transformer.h"
#include "heed/models/text_writer.h"
#include "heed/text/characters.h"

namespace heed { inline namespace v0 { namespace models {

/// A small causal model, and the characters of its tokens.
struct CharacterModel {
  CausalConfig config;
  text::Characters characters;
  std::unique_ptr<CausalTransformer> model;
};

/// Loads the folder of a run, which contains model.safetensors, or such a file.
/// @param names how messages name the settings in the file
/// @throws std::runtime_error naming the file when it is of another task, or its parts contradict
/// each other; FormatError, IoError as read_safetensors().
HEED_API CharacterModel load_character_model(std::filesystem::path path,
                                             SettingNames names = SettingNames::kMembers);

/// A sampled continuation of `prompt`. The model sees at most config.context characters, whatever
/// sampling.context is.
/// @throws InvalidArgument when the prompt is empty, not valid UTF-8, or has a character that the
/// model does not know.
HEED_API std::string continue_text(const CharacterModel& model, std::string_view prompt,
                                   const TextSampling& sampling = {});

/// The most likely continuation of `prompt` that a beam search finds. @throws as continue_text().
HEED_API std::string likeliest_text(const CharacterModel& model, std::string_view prompt,
                                    const TextBeam& search = {});

}}}  // namespace heed::v0::models
