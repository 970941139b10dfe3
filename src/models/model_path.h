// Checks of a path where a model is expected.
#pragma once

#include <filesystem>

namespace heed { inline namespace v0 { namespace models {

// Throws IoError if the file cannot be read.
bool is_gguf(const std::filesystem::path& path);

// Accepts everything that load() opens: a GGUF file, or a folder with config.json and weights as
// safetensors. Otherwise throws IoError, which says what the path holds and what to do.
void check_model_path(const std::filesystem::path& path);

}}}  // namespace heed::v0::models
