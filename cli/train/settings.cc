#include "train/settings.h"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "heed/error.h"
#include "heed/mask.h"
#include "json_text.h"
#include "mask_argument.h"
#include "train/positions.h"

namespace heed::cli {

void check_range(std::string_view name, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return;
  throw UsageError(fmt::format("{} is {}, expected {} to {}", name, value, low, high));
}

void throw_no_settings(const std::filesystem::path& file) {
  throw std::runtime_error(
      fmt::format("'{}' does not hold the settings of a model of heed", file.string()));
}

void check(const TrainingSettings& settings) {
  check_range("--steps", settings.steps, 1, 100'000'000);
  check_range("--batch", settings.batch, 1, 4096);
  check_range("--save-every", settings.save_every, 1, 100'000'000);
  if (!(settings.learning_rate > 0 && std::isfinite(settings.learning_rate))) {
    throw UsageError(fmt::format("--lr is {}, expected a positive number", settings.learning_rate));
  }
}

namespace {

// The mask has to fit batches of a whole context, the longer ones that are measured, and a text
// that is written token by token.
void check_mask(const ModelSettings& settings) {
  const Mask mask = parse_mask("--mask", settings.mask);
  const std::int64_t context = settings.context;
  const ScoreShape shapes[] = {{2, 0, context, context},
                               {1, 0, 4 * context, 4 * context},
                               {1, 0, 1, 1},
                               {1, 0, 1, context, context - 1}};
  try {
    for (const ScoreShape& shape : shapes) count_visible(mask, shape);
  } catch (const InvalidArgument& error) {
    throw UsageError(fmt::format("--mask '{}' does not fit sequences of any length: {}",
                                 settings.mask, error.what()));
  }
}

}  // namespace

void check(const ModelSettings& settings) {
  check_range("the vocabulary", settings.vocab_size, 1, 100'000);
  check_range("--context", settings.context, 1, 512);
  check_range("--layers", settings.layers, 1, 24);
  check_range("--d-model", settings.d_model, 1, 1024);
  check_range("--heads", settings.heads, 1, 64);
  if (settings.d_model % settings.heads != 0) {
    throw UsageError(fmt::format("--d-model is {}, expected a multiple of --heads, {}",
                                 settings.d_model, settings.heads));
  }
  check_positions(settings);
  check_mask(settings);
}

nlohmann::json to_json(const TrainingSettings& settings) {
  return {{"steps", settings.steps},
          {"batch", settings.batch},
          {"learning_rate", settings.learning_rate},
          {"seed", settings.seed},
          {"save_every", settings.save_every}};
}

nlohmann::json to_json(const ModelSettings& settings) {
  return {{"vocab_size", settings.vocab_size},
          {"context", settings.context},
          {"layers", settings.layers},
          {"d_model", settings.d_model},
          {"heads", settings.heads},
          {"positions", settings.positions},
          {"mask", settings.mask}};
}

TrainingSettings training_settings(const nlohmann::json& json, const std::filesystem::path& file) {
  return settings_of(file, [&] {
    const nlohmann::json& from = json.at("training");
    return TrainingSettings{from.at("steps"), from.at("batch"), from.at("learning_rate"),
                            from.at("seed"), from.at("save_every")};
  });
}

ModelSettings model_settings(const nlohmann::json& json, const std::filesystem::path& file) {
  return settings_of(file, [&] {
    const nlohmann::json& from = json.at("model");
    return ModelSettings{from.at("vocab_size"),     from.at("context"), from.at("layers"),
                         from.at("d_model"),        from.at("heads"),   from.at("positions"),
                         from.value("mask", "none")};
  });
}

std::string text_setting(const nlohmann::json& json, const char* name,
                         const std::filesystem::path& file) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_string()) throw_no_settings(file);
  return found->get<std::string>();
}

nlohmann::json parse_settings(const std::string& text, const std::filesystem::path& file) {
  nlohmann::json json = parse_json(text);
  if (!json.is_object()) throw_no_settings(file);
  return json;
}

nlohmann::json parse_settings(const std::string& text, std::string_view task,
                              const std::filesystem::path& file) {
  nlohmann::json json = parse_settings(text, file);
  if (const std::string found = text_setting(json, "task", file); found != task) {
    throw std::runtime_error(fmt::format("'{}' is of `heed train {}`, expected `heed train {}`",
                                         file.string(), found, task));
  }
  return json;
}

}  // namespace heed::cli
