#include "models/trained_model.h"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>

#include "heed/core/error.h"
#include "io/byte_source.h"
#include "io/safetensors_header.h"

namespace heed::cli {

namespace {

// True if a file has the settings that heed saves with weights, or is damaged and may have had
// them.
bool is_saved_by_heed(const std::filesystem::path& file) {
  try {
    io::FileSource source(file);
    const std::string header = io::read_safetensors_header(source);
    const std::int64_t data_bytes =
        source.size() - io::kSafetensorsPrefix - static_cast<std::int64_t>(header.size());
    return io::parse_safetensors_header(header, file.string(), data_bytes)
        .metadata.contains("settings");
  } catch (const FormatError&) {
    return file.extension() == ".safetensors";
  }
}

}  // namespace

bool is_trained_model(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    return fs::is_regular_file(path, error) && !is_saved_by_heed(path);
  }
  const fs::path file = path / "model.safetensors";
  return fs::exists(path / "config.json", error) || !fs::exists(file, error) ||
         !is_saved_by_heed(file);
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

models::Model load_reader(const std::filesystem::path& path) {
  const models::Model model = load_trained(path);
  return model.config().encoder ? model.encoder() : model;
}

void refuse_trained(const std::filesystem::path& path) {
  if (!is_trained_model(path)) return;
  throw std::runtime_error(
      fmt::format("--model: '{0}' is not what `heed train --save` wrote; a trained model of "
                  "transformers or a GGUF file is read by `heed heads --model '{0}'` and `heed "
                  "explain --model '{0}' \"...\"`",
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
