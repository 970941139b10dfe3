// What load() checks, for callers that do not need the weights.
#pragma once

#include <filesystem>

#include "heed/models/checkpoint.h"
#include "heed/models/config.h"

namespace heed { inline namespace v0 { namespace models {

// True if the folder has the files of a tokenizer.
bool has_tokenizer(const std::filesystem::path& folder);

// Checks, without reading weights, that each tensor of the model is there with its shape in a type
// that is read, and that there is no other. Throws FormatError as load() does.
void check_weights(const Checkpoint& checkpoint, const ModelConfig& config);

}}}  // namespace heed::v0::models
