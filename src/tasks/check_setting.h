// Checks of the numbers that make a task.
#pragma once

#include <fmt/format.h>

#include <cstdint>

#include "heed/core/error.h"

namespace heed { inline namespace v0 { namespace tasks {

// Throws InvalidArgument unless task.`name` is at least `least` and, if there is a bound, at most
// `most`.
inline void check_setting(const char* function, const char* name, std::int64_t found,
                          std::int64_t least, std::int64_t most = INT64_MAX) {
  if (found >= least && found <= most) return;
  throw InvalidArgument(most == INT64_MAX ? fmt::format("{}: task.{} is {}, expected at least {}",
                                                        function, name, found, least)
                                          : fmt::format("{}: task.{} is {}, expected {} to {}",
                                                        function, name, found, least, most));
}

}}}  // namespace heed::v0::tasks
