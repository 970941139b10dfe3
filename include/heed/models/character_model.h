/// A model of characters that `heed train lm` or train::train_characters() has saved.
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

/// A small causal model, and the characters that its tokens are.
struct CharacterModel {
  CausalConfig config;
  text::Characters characters;
  std::unique_ptr<CausalTransformer> model;
};

/// From the folder of a run, which has model.safetensors, or such a file.
/// @param names what messages call the settings in the file
/// @throws std::runtime_error naming the file when it is of another task, or does not fit together;
/// FormatError, IoError as read_safetensors().
HEED_API CharacterModel load_character_model(std::filesystem::path path,
                                             SettingNames names = SettingNames::kMembers);

/// The text after `prompt`. The model sees config.context characters at most, whatever
/// sampling.context says.
/// @throws InvalidArgument when the prompt is empty, not valid UTF-8, or has a character that the
/// model does not know.
HEED_API std::string continue_text(const CharacterModel& model, std::string_view prompt,
                                   const TextSampling& sampling = {});

/// The likeliest text after `prompt` that a beam search finds. @throws as continue_text().
HEED_API std::string likeliest_text(const CharacterModel& model, std::string_view prompt,
                                    const TextBeam& search = {});

}}}  // namespace heed::v0::models
