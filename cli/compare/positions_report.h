// What `heed compare positions` says.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "compare/positions_comparison.h"
#include "heed/viz/figure.h"

namespace heed::cli {

nlohmann::json to_json(const PositionsComparison& comparison);
// Tables of losses, of symbols and sequences repeated, and of the places the kinds take in both.
std::string to_markdown(const PositionsComparison& comparison);
// Loss and symbol accuracy against length.
Figure positions_figure(const PositionsComparison& comparison, Theme theme);

}  // namespace heed::cli
