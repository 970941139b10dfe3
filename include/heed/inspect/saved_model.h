/// Measurements of the heads of a saved model, as `heed diagnose --model` makes them.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/inspect/layers.h"
#include "heed/models/causal_config.h"

namespace heed { inline namespace v0 { namespace inspect {

/// Measurements of a saved model on some sequences.
struct ModelMeasurement {
  std::string task = {};  ///< of `heed train`: "lm", "copy", "translate"
  std::string sequences;  ///< a description of the sequences
  std::vector<MeasuredLayer> layers;
  std::vector<std::string> source = {};  ///< the tokens of the first sequence, or of its source
  std::vector<std::string> target = {};  ///< the tokens of the decoder's input, if any
};

/// Input of a saved model: sentences, or a text, which is read in pieces, or, with neither, what
/// its task has.
struct ModelInput {
  std::vector<std::string> sentences = {};
  std::optional<std::string> text = std::nullopt;
};

/// Measures the model in a folder, or in its model file. @param names how messages name settings
/// @throws std::runtime_error naming the file when there is no model that heed trained;
/// FormatError, IoError as read_safetensors().
/// @throws InvalidArgument when the input does not fit the model.
HEED_API ModelMeasurement
measure_model(const std::filesystem::path& model, const ModelInput& input = {},
              models::SettingNames names = models::SettingNames::kMembers);

}}}  // namespace heed::v0::inspect
