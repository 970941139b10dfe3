// Data for the page's script: JSON in ASCII without <, > and &, and arrays in base64.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace explorer {

// A text, sanitised by sanitize_for_terminal().
std::string to_json(std::string_view text);
std::string to_json(const std::vector<std::string>& texts);

// A number with a decimal point and as few digits as identify it.
std::string to_json(double number);

// An object, given its members as JSON.
std::string to_json(const std::map<std::string, std::string>& members);

std::string encoded(std::span<const std::byte> bytes);
std::string encoded(const Tensor<float>& array);

// The keys that each query sees: "none" (no mask), "causal", or one bit per cell, row after row,
// the first in the highest bit of a byte.
std::string encoded(const Tensor<bool>& visible);

}}}  // namespace heed::v0::explorer
