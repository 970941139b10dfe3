// Models that somebody else trained, as verbs that take --model read them.
#pragma once

#include <filesystem>
#include <string>

#include "heed/models/model.h"

namespace heed::cli {

// Whether the path is a folder as transformers saves it (it has config.json) or a GGUF file, not
// what `heed train` saves.
bool is_trained_model(const std::filesystem::path& path);

// "LlamaForCausalLM, 30 layers of 9 heads, 134.5 million parameters in 98 MB".
std::string describe_model(const models::Model& model);

}  // namespace heed::cli
