/// What a model file holds, and what heed would refuse of it, found without reading its weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/models/config.h"

namespace heed { inline namespace v0 { namespace models {

/// The tensors of one storage type.
struct StoredTensors {
  std::string type;  ///< as the file spells it: "BF16", "Q4_K"
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;  ///< 0 for a type whose size heed does not know
  bool is_read = true;     ///< false if heed does not read the type
};

/// What a path is. Parts that could not be read are empty, and `refusals` says why.
struct ModelDescription {
  std::filesystem::path path;
  bool is_gguf = false;  ///< otherwise a folder
  /// As the file names it, also if heed has no such family: "LlamaForCausalLM", "mamba".
  std::string architecture = {};
  std::optional<ModelConfig> config = std::nullopt;
  std::int64_t num_files = 0;                             ///< with weights
  std::vector<StoredTensors> tensors = {};                ///< by type, the most bytes first
  std::optional<std::int64_t> num_tokens = std::nullopt;  ///< of the tokenizer
  bool has_chat_template = false;
  /// The message of load() for each part that it would refuse: weights, configuration, tokenizer,
  /// chat template. Empty if the model opens.
  std::vector<std::string> refusals = {};

  bool opens() const noexcept { return refusals.empty(); }
  std::int64_t num_elements() const noexcept;
  std::int64_t num_bytes() const noexcept;
};

/// Reads the headers of a model's files, its configuration and its tokenizer. A damaged file is a
/// refusal. @throws IoError when the path is neither a folder with config.json and weights nor a
/// GGUF file, or a file cannot be read.
HEED_API ModelDescription describe(const std::filesystem::path& path);

/// describe() of the models of a path: of itself, or, of a folder that is no model, of its GGUF
/// files and of those folders in it that have a config.json, sorted by name. Of a file in parts the
/// first stands for all. What cannot be read in such a folder is a refusal. Not empty.
/// @throws IoError as describe() when there is no model.
HEED_API std::vector<ModelDescription> describe_all(const std::filesystem::path& path);

/// The description as a JSON object. Its members are those of ModelDescription and its
/// configuration; layers has an object for each layer.
HEED_API std::string to_json(const ModelDescription& description);

}}}  // namespace heed::v0::models
