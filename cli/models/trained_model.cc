#include "models/trained_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

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

std::string describe_model(const models::Model& model) {
  const models::ModelConfig& config = model.config();
  return fmt::format("{}, {} layers of {} heads, {:.1f} million parameters in {:.0f} MB",
                     config.architecture, config.num_layers, config.num_heads,
                     static_cast<double>(model.num_parameters()) / 1e6,
                     static_cast<double>(model.num_bytes()) / 1e6);
}

}  // namespace heed::cli
