#include "models/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "heed/core/error.h"
#include "io/json.h"

namespace heed { inline namespace v0 { namespace models {

std::string name_of_setting(std::string_view member, SettingNames names) {
  if (names == SettingNames::kMembers || member.find(' ') != member.npos) {
    return std::string(member);
  }
  if (member == "learning_rate") return "--lr";
  std::string option = "--" + std::string(member);
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

void check_setting(std::string_view member, std::int64_t value, const SettingRange& range,
                   SettingNames names) {
  if (value >= range.low && value <= range.high) return;
  throw InvalidArgument(fmt::format("{} is {}, expected {} to {}", name_of_setting(member, names),
                                    value, range.low, range.high));
}

void check_setting(std::string_view member, const std::string& value,
                   const std::vector<std::string>& allowed, SettingNames names) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return;
  throw InvalidArgument(fmt::format("{} is '{}', expected one of {}",
                                    name_of_setting(member, names), value,
                                    fmt::join(allowed, ", ")));
}

void throw_no_settings(const std::filesystem::path& file) {
  throw std::runtime_error(
      fmt::format("'{}' does not hold the settings of a model of heed", file.string()));
}

nlohmann::json to_json(const CausalConfig& config) {
  return {{"vocab_size", config.vocab_size},
          {"context", config.context},
          {"layers", config.layers},
          {"d_model", config.d_model},
          {"heads", config.heads},
          {"positions", config.positions},
          {"mask", config.mask}};
}

CausalConfig causal_config(const nlohmann::json& json, const std::filesystem::path& file,
                           SettingNames names) {
  return settings_of(file, [&] {
    const nlohmann::json& from = json.at("model");
    CausalConfig config{from.at("vocab_size"),     from.at("context"), from.at("layers"),
                        from.at("d_model"),        from.at("heads"),   from.at("positions"),
                        from.value("mask", "none")};
    check_config(config, names);
    return config;
  });
}

std::string text_setting(const nlohmann::json& json, const char* name,
                         const std::filesystem::path& file) {
  const auto found = json.find(name);
  if (found == json.end() || !found->is_string()) throw_no_settings(file);
  return found->get<std::string>();
}

namespace {

// The settings of integers must fit them: a larger number would be read as any other.
void check_numbers(const nlohmann::json& json, const std::filesystem::path& file) {
  constexpr double kBound = 0x1p63;
  if (json.is_number_float() && !(std::abs(json.get<double>()) < kBound)) {
    throw std::runtime_error(fmt::format(
        "'{}' does not hold the settings of a model of heed: the number {} is beyond 64 bits",
        file.string(), json.dump()));
  }
  if (!json.is_structured()) return;
  for (const nlohmann::json& member : json) check_numbers(member, file);
}

}  // namespace

nlohmann::json parse_settings(const std::string& text, const std::filesystem::path& file) {
  nlohmann::json json = io::parse_json(text);
  if (!json.is_object()) throw_no_settings(file);
  check_numbers(json, file);
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

}}}  // namespace heed::v0::models
