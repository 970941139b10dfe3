// Settings of models: their names and ranges in messages, and their JSON in files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/error.h"
#include "heed/models/causal_config.h"

namespace heed { inline namespace v0 { namespace models {

// Returns "d_model", or "--d-model" for the command. A name that is not an option is unchanged:
// "the vocabulary".
std::string name_of_setting(std::string_view member, SettingNames names);

// Throws InvalidArgument naming the member unless low ≤ value ≤ high.
struct SettingRange {
  std::int64_t low;
  std::int64_t high;
};
void check_setting(std::string_view member, std::int64_t value, const SettingRange& range,
                   SettingNames names);

// Throws InvalidArgument naming the member unless `value` is one of `allowed`.
void check_setting(std::string_view member, const std::string& value,
                   const std::vector<std::string>& allowed, SettingNames names);

[[noreturn]] HEED_API void throw_no_settings(const std::filesystem::path& file);

// Returns the settings that read() takes from the JSON of `file` and checks. Throws
// std::runtime_error naming the file if a setting is missing, of another type or out of range.
template <class Read>
auto settings_of(const std::filesystem::path& file, const Read& read) {
  try {
    return read();
  } catch (const nlohmann::json::exception&) {
    throw_no_settings(file);
  } catch (const InvalidArgument& error) {
    throw std::runtime_error('\'' + file.string() + "': " + error.what());
  }
}

HEED_API nlohmann::json to_json(const CausalConfig& config);

// Reads and checks the configuration in a file. Throws std::runtime_error naming the file if it
// holds none of heed's.
HEED_API CausalConfig causal_config(const nlohmann::json& json, const std::filesystem::path& file,
                                    SettingNames names);

// The member `name`, which must be a text.
HEED_API std::string text_setting(const nlohmann::json& json, const char* name,
                                  const std::filesystem::path& file);

// The settings in the metadata of a file: an object, for the given `task` if there is one.
HEED_API nlohmann::json parse_settings(const std::string& text, const std::filesystem::path& file);
HEED_API nlohmann::json parse_settings(const std::string& text, std::string_view task,
                                       const std::filesystem::path& file);

}}}  // namespace heed::v0::models
