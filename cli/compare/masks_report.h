// The report of `heed compare masks`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "compare/masks_comparison.h"
#include "heed/viz/figure.h"

namespace heed::cli {

nlohmann::json to_json(const MasksComparison& comparison);
// Returns tables of cost, of quality, and of the reach of windows.
std::string to_markdown(const MasksComparison& comparison);
// Draws quality against the visible share, and copying against windows × layers.
Figure masks_figure(const MasksComparison& comparison, Theme theme);

}  // namespace heed::cli
