// What `heed compare masks` says.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "compare/masks_comparison.h"
#include "heed/viz/figure.h"

namespace heed::cli {

nlohmann::json to_json(const MasksComparison& comparison);
// Tables of cost, of quality, and of how far windows reach.
std::string to_markdown(const MasksComparison& comparison);
// Quality against the visible share, and copying against windows × layers.
Figure masks_figure(const MasksComparison& comparison, Theme theme);

}  // namespace heed::cli
