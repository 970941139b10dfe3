// Values in Python's notation.
#pragma once

#include <fmt/format.h>

#include <string>

namespace heed { inline namespace v0 { namespace nn {

// Formats e.g. 0.1, 1e-05, and 0.0 for 0.
inline std::string python_repr(double number) {
  std::string text = fmt::format("{}", number);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

}}}  // namespace heed::v0::nn
