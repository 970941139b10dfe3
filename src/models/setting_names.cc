#include "models/setting_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "heed/core/error.h"

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

}}}  // namespace heed::v0::models
