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

/// Reads the headers of a model's files, its configuration and its tokenizer.
/// @throws IoError when the path is neither a folder with config.json and weights nor a GGUF file;
/// FormatError when a header of the weights is damaged.
HEED_API ModelDescription describe(const std::filesystem::path& path);

/// The models of a path: itself, or, of a folder that is none, its GGUF files and those folders in
/// it that have a config.json, sorted by name. Of a file in parts the first stands for all. Not
/// empty. @throws IoError as describe() when there is none.
HEED_API std::vector<std::filesystem::path> find_models(const std::filesystem::path& path);

/// The description as a JSON object. Its members are those of ModelDescription and its
/// configuration; layers has an object for each layer.
HEED_API std::string to_json(const ModelDescription& description);

}}}  // namespace heed::v0::models
