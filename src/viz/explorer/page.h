// Assembles the page from its data.
#pragma once

#include <string>
#include <vector>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace explorer {

// The colour maps by name, each 256 colours in base64: a JSON object.
std::string color_maps_json();

// The whole file. `data` and `layers` are JSON. Each layer is an element of its own, so that it is
// parsed only when one of its heads is opened.
std::string assembled_page(const std::string& data, const std::vector<std::string>& layers,
                           bool has_server);

}}}  // namespace heed::v0::explorer
