// Messages about settings, which are members in a program and options of the command.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

}}}  // namespace heed::v0::models
