// Reads models from other programs, for verbs that take --model.
#pragma once

#include <filesystem>
#include <string>

#include "heed/models/model.h"

namespace heed::cli {

// True if the path is not a model of `heed train`: it is a folder as transformers saves it, a GGUF
// file, or something that models::load() refuses with a reason.
bool is_trained_model(const std::filesystem::path& path);

// Loads the model of --model. Throws std::runtime_error with advice where nothing exists or `heed
// train` saved the model.
models::Model load_trained(const std::filesystem::path& path);

// Loads the model of --model for a verb that shows how it reads a text: of a model with an encoder
// that half. Throws as load_trained().
models::Model load_reader(const std::filesystem::path& path);

// For a verb that reads models of `heed train`: throws std::runtime_error, which names the verbs
// that read the model, where it comes from another program.
void refuse_trained(const std::filesystem::path& path);

// Returns for example "LlamaForCausalLM, 30 layers of 9 heads, 134.5 million parameters in 98 MB".
std::string describe_model(const models::Model& model);

}  // namespace heed::cli
