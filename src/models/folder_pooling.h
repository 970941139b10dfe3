// Reads how sentence-transformers turns a text into one vector, from the files of a folder.
#pragma once

#include <filesystem>

#include "heed/models/config.h"

namespace heed { inline namespace v0 { namespace models {

// The folder of the transformer: a subfolder if modules.json names one, otherwise `folder`.
std::filesystem::path transformer_folder(const std::filesystem::path& folder);

// Returns the mean if there is no modules.json.
// @param hidden_size of the transformer
// @throws FormatError naming a module or a member that requests something heed lacks.
Pooling read_pooling(const std::filesystem::path& folder, std::int64_t hidden_size);

}}}  // namespace heed::v0::models
