// The report of `heed compare positions`.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "compare/positions_comparison.h"
#include "heed/viz/figure.h"

namespace heed::cli {

nlohmann::json to_json(const PositionsComparison& comparison);
// Returns tables of losses, of repeated symbols and sequences, and of the ranks of the kinds in
// both.
std::string to_markdown(const PositionsComparison& comparison);
// Draws loss and symbol accuracy against length.
Figure positions_figure(const PositionsComparison& comparison, Theme theme);

}  // namespace heed::cli
