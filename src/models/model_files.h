// The files of a model: where they are expected, and the map from tensors to the files of a folder.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace models {

// Throws IoError if the file cannot be read.
bool is_gguf(const std::filesystem::path& path);

// Accepts everything that load() opens: a GGUF file, or a folder with config.json and weights as
// safetensors. Otherwise throws IoError, which says what the path holds and what to do.
void check_model_path(const std::filesystem::path& path);

// Returns the file of each tensor, a plain file name, from the member "weight_map" of the text.
// Throws FormatError, naming `file`, if the member is missing or no object of strings, names a
// tensor twice, or names a file outside the folder.
HEED_API std::map<std::string, std::string> parse_checkpoint_index(std::string_view text,
                                                                   const std::string& file);

}}}  // namespace heed::v0::models
