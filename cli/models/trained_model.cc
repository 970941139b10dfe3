#include "models/trained_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>
#include <system_error>

namespace heed::cli {

bool is_trained_model(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return std::filesystem::exists(path / "config.json", error);
  }
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending == ".gguf";
}

models::Model load_trained(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw std::runtime_error(
        fmt::format("--model: there is no '{}', expected a folder as transformers saves it or a "
                    "GGUF file; `make models` in a clone of heed makes build/models, with two",
                    path.string()));
  }
  if (!is_trained_model(path) && std::filesystem::exists(path / "checkpoint.safetensors", error)) {
    throw std::runtime_error(
        fmt::format("--model: '{0}' was saved by `heed train`, expected a model of transformers; "
                    "`heed diagnose --model '{0}'` measures it",
                    path.string()));
  }
  return models::load(path);
}

void refuse_trained(const std::filesystem::path& path) {
  if (!is_trained_model(path)) return;
  throw std::runtime_error(
      fmt::format("--model: '{0}' is a trained model of transformers or a GGUF file, expected what "
                  "`heed train --save` wrote; `heed heads --model '{0}'` and `heed explain --model "
                  "'{0}' \"...\"` read it",
                  path.string()));
}

std::string describe_model(const models::Model& model) {
  const models::ModelConfig& config = model.config();
  return fmt::format("{}, {} layers of {} heads, {:.1f} million parameters in {:.0f} MB",
                     config.architecture, config.num_layers, config.num_heads,
                     static_cast<double>(model.num_parameters()) / 1e6,
                     static_cast<double>(model.num_bytes()) / 1e6);
}

}  // namespace heed::cli
