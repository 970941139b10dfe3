// The page: its files, embedded by the build; its data, as JSON in ASCII without <, > and & and as
// arrays in base64; and the two together.
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

// page.html, with the placeholders @POLICY@, @STYLE@, @DATA@ and @SCRIPT@.
std::string_view page_source();
std::string_view style_source();
// All .js files, in one function.
std::string_view script_source();

// SHA-256 in hexadecimal digits of the two texts above.
std::string_view style_sha256();
std::string_view script_sha256();

// Base64 with padding: RFC 4648, section 4.
std::string base64(std::span<const std::byte> bytes);

// Base64 of the bytes that pairs of hexadecimal digits give.
std::string base64_of_hex(std::string_view digits);

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

// The colour maps by name, each 256 colours in base64: a JSON object.
std::string color_maps_json();

// The whole file. `data` and `layers` are JSON. Each layer is an element of its own, so that it is
// parsed only when one of its heads is opened.
std::string assembled_page(const std::string& data, const std::vector<std::string>& layers,
                           bool has_server);

}}}  // namespace heed::v0::explorer
