// What lies at a path where a model is expected.
#pragma once

#include <filesystem>

namespace heed { inline namespace v0 { namespace models {

// Throws IoError when the file cannot be read.
bool is_gguf(const std::filesystem::path& path);

// Passes what load() opens: a GGUF file, or a folder with config.json and weights as safetensors.
// Throws IoError for anything else that is there, which says what it is and what to do.
void check_model_path(const std::filesystem::path& path);

}}}  // namespace heed::v0::models
