// Models that somebody else trained, as verbs that take --model read them.
#pragma once

#include <filesystem>
#include <string>

#include "heed/models/model.h"

namespace heed::cli {

// Whether the path is something else than what `heed train` saves: a folder as transformers saves
// it, a GGUF file, or what models::load() refuses with a reason.
bool is_trained_model(const std::filesystem::path& path);

// models::load() of what --model names. Throws std::runtime_error where nothing is there, or what
// `heed train` saved, saying what to do.
models::Model load_trained(const std::filesystem::path& path);

// For a verb that reads what `heed train` saves: throws std::runtime_error where somebody else
// trained it, naming the verbs that read it.
void refuse_trained(const std::filesystem::path& path);

// "LlamaForCausalLM, 30 layers of 9 heads, 134.5 million parameters in 98 MB".
std::string describe_model(const models::Model& model);

}  // namespace heed::cli
