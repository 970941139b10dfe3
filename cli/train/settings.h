// What describes a training run: kept in its files, so that it can be resumed and its model used.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

#include "verbs.h"

namespace heed::cli {

// How long and how a model is trained.
struct TrainingSettings {
  std::int64_t steps = 1000;
  std::int64_t batch = 16;
  double learning_rate = 3e-3;
  std::uint64_t seed = 0;
  std::int64_t save_every = 100;
};

// The sizes of a causal model.
struct ModelSettings {
  std::int64_t vocab_size = 0;
  std::int64_t context = 64;  // how many tokens a training sequence has
  std::int64_t layers = 2;
  std::int64_t d_model = 64;
  std::int64_t heads = 4;
  std::string positions = "sinusoidal";  // one of position_names()
  std::string mask = "none";  // as parse_mask reads it: which keys are visible, of those not later
};

// Throws UsageError naming `name` unless low ≤ value ≤ high.
void check_range(std::string_view name, std::int64_t value, std::int64_t low, std::int64_t high);

// Throw UsageError when numbers are out of range or do not fit together.
void check(const TrainingSettings& settings);
void check(const ModelSettings& settings);

[[noreturn]] void throw_no_settings(const std::filesystem::path& file);

nlohmann::json to_json(const TrainingSettings& settings);
nlohmann::json to_json(const ModelSettings& settings);

// What read() takes from the JSON of `file`, checked with check(). Throws std::runtime_error naming
// the file when something is missing, of another type or out of range.
template <class Read>
auto settings_of(const std::filesystem::path& file, const Read& read) {
  try {
    auto settings = read();
    check(settings);
    return settings;
  } catch (const nlohmann::json::exception&) {
    throw_no_settings(file);
  } catch (const UsageError& error) {
    throw std::runtime_error('\'' + file.string() + "': " + error.what());
  }
}

// What a file says, checked. Throw std::runtime_error naming the file when it is none of ours.
TrainingSettings training_settings(const nlohmann::json& json, const std::filesystem::path& file);
ModelSettings model_settings(const nlohmann::json& json, const std::filesystem::path& file);

// The member `name`, a text.
std::string text_setting(const nlohmann::json& json, const char* name,
                         const std::filesystem::path& file);

// The settings in the metadata of a file: an object, and where `task` is given, of that.
nlohmann::json parse_settings(const std::string& text, const std::filesystem::path& file);
nlohmann::json parse_settings(const std::string& text, std::string_view task,
                              const std::filesystem::path& file);

}  // namespace heed::cli
