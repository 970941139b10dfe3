// How sentence-transformers makes one vector of a text, as the files of a folder say.
#pragma once

#include <filesystem>

#include "heed/models/config.h"

namespace heed { inline namespace v0 { namespace models {

// The folder of the transformer itself, which modules.json may put below; else the same.
std::filesystem::path transformer_folder(const std::filesystem::path& folder);

// The mean, where there is no modules.json.
// @param hidden_size of the transformer
// @throws FormatError naming a module or a member that asks for what heed lacks.
Pooling read_pooling(const std::filesystem::path& folder, std::int64_t hidden_size);

}}}  // namespace heed::v0::models
