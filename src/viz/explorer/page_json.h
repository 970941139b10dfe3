// What the page's script reads: JSON in ASCII without <, > and &, and arrays in base64.
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

// A text, made visible as sanitize_for_terminal() does.
std::string to_json(std::string_view text);
std::string to_json(const std::vector<std::string>& texts);

// With a point, as many digits as tell it from its neighbours, and no more.
std::string to_json(double number);

// An object of members that are JSON already.
std::string to_json(const std::map<std::string, std::string>& members);

std::string encoded(std::span<const std::byte> bytes);
std::string encoded(const Tensor<float>& array);

// Which keys a query sees: "none" (no mask), "causal", or one bit a cell, row after row, the first
// in the highest bit of a byte.
std::string encoded(const Tensor<bool>& visible);

}}}  // namespace heed::v0::explorer
