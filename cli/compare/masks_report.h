// The report of a comparison of masks.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compare/masks_comparison.h"
#include "heed/viz/chart.h"
#include "heed/viz/figure.h"

namespace heed::cli {

nlohmann::json to_json(const MasksComparison& comparison);
// Returns tables of cost and of quality.
std::string to_markdown(const MasksComparison& comparison);
// Draws quality against the visible share.
Figure masks_figure(const MasksComparison& comparison, Theme theme);

// The parts of the report, for more tasks.
inline constexpr ScoreFormat kPercent{100, 1};
inline constexpr const char* kShareTitle = "visible pairs, % of the causal ones";

// Returns the visible share of a sequence in percent; "–" for linear attention, which has no pairs.
std::string share_cell(const SizedAttention& attention, std::int64_t length);

nlohmann::json json_of(const SeedScores& scores);

// What models learned of sequences of `length`.
struct QualityScores {
  std::vector<SeedScores> scores;  // of each result
  std::int64_t length;
  double unit;  // what is drawn of a score of 1
};
// Draws the scores against the visible share.
Panel quality_panel(const MasksComparison& comparison, const QualityScores& quality,
                    const ChartOptions& options);
Panel titled_panel(const std::vector<Curve>& curves, const ChartOptions& options);
ChartOptions percent_chart(const std::string& title, const std::string& x_title);

}  // namespace heed::cli
