#include "heed/viz/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/core/error.h"
#include "viz/figure/matrix_panel.h"
#include "viz/figure/scales.h"

namespace heed { inline namespace v0 {
namespace {

constexpr int kWidth = 560;
constexpr int kHeight = 300;

// The smallest and the largest number that can be drawn.
struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  void include(double value, bool is_log) {
    if (!std::isfinite(value) || (is_log && value <= 0)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool is_empty() const { return !(low <= high); }

  // The range with a margin of `share` of its length on both sides; never empty.
  Range widened(double share, bool is_log) const {
    if (is_log) {
      const double factor = std::max(std::pow(high / low, share), 1.02);
      return {low / factor, high * factor};
    }
    const double margin = std::max((high - low) * share, low == high ? std::abs(low) / 2 : 0.0);
    return {low - margin, high + (margin > 0 ? margin : 1)};
  }
};

void check_ends(const char* function, const ChartOptions& options) {
  for (const auto& end : {options.y_low, options.y_high}) {
    if (!end || (std::isfinite(*end) && (!options.has_log_y || *end > 0))) continue;
    throw InvalidArgument(fmt::format("{}: an end of the y axis is {}, expected a {} number",
                                      function, *end, options.has_log_y ? "positive" : "finite"));
  }
}

Axis y_axis(const char* function, Range range, const ChartOptions& options) {
  range.low = options.y_low.value_or(range.low);
  range.high = options.y_high.value_or(range.high);
  if (!(range.low < range.high)) {
    throw InvalidArgument(fmt::format("{}: the y axis goes from {} to {}, expected to rise",
                                      function, range.low, range.high));
  }
  return figure::number_axis(options.y_title, range.low, range.high, options.has_log_y);
}

Figure one_panel(const ChartOptions& options, Panel panel) {
  panel.width = kWidth;
  panel.height = kHeight;
  panel.has_grid = true;
  return {.title = options.title,
          .note = options.note,
          .panels = {std::move(panel)},
          .theme = options.theme};
}

void check_series(std::span<const std::string> categories, std::span<const Bars> series) {
  if (categories.empty() || series.empty()) {
    throw InvalidArgument(fmt::format("bars_figure: {} categories and {} series, expected some",
                                      categories.size(), series.size()));
  }
  for (const Bars& bars : series) {
    if (bars.heights.size() != categories.size()) {
      throw InvalidArgument(fmt::format("bars_figure: {} heights were given for {} categories",
                                        bars.heights.size(), categories.size()));
    }
    for (const double height : bars.heights) {
      if (std::isfinite(height)) continue;
      throw InvalidArgument(fmt::format("bars_figure: a height is {}", height));
    }
  }
}

std::vector<double> softmax_at(FloatView scores, double temperature) {
  std::vector<double> weights;
  double largest = -std::numeric_limits<double>::infinity();
  for_each_element(scores, [&](float score) { largest = std::max<double>(largest, score); });
  double sum = 0;
  for_each_element(scores, [&](float score) {
    weights.push_back(std::exp((score - largest) / temperature));
    sum += weights.back();
  });
  for (double& weight : weights) weight /= sum;
  return weights;
}

void check_scores(FloatView scores) {
  bool is_any_visible = false;
  if (scores.rank() == 1) {
    for_each_element(scores, [&](float score) {
      if (std::isnan(score) || score == std::numeric_limits<float>::infinity()) {
        throw InvalidArgument(fmt::format("temperature_figure: a score is {}", score));
      }
      is_any_visible = is_any_visible || std::isfinite(score);
    });
  }
  if (is_any_visible) return;
  throw InvalidArgument(
      fmt::format("temperature_figure: scores are {}, expected a vector with a "
                  "finite element",
                  to_string(scores.shape())));
}

}  // namespace

Figure curves_figure(std::span<const Curve> curves, const ChartOptions& options) {
  const char* function = "curves_figure";
  check_ends(function, options);
  Panel panel;
  Range x;
  Range y;
  for (const Curve& curve : curves) {
    if (curve.x.size() != curve.y.size()) {
      throw InvalidArgument(fmt::format("{}: curve '{}' has {} x and {} y", function, curve.name,
                                        curve.x.size(), curve.y.size()));
    }
    for (const double value : curve.x) x.include(value, options.has_log_x);
    for (const double value : curve.y) y.include(value, options.has_log_y);
    panel.curves.push_back(curve);
  }
  if (x.is_empty() || y.is_empty()) {
    throw InvalidArgument(
        fmt::format("{}: no point of {} curves can be drawn", function, curves.size()));
  }
  panel.has_names_at_ends = options.has_names_at_ends;
  x = x.widened(0.03, options.has_log_x);
  panel.x = figure::number_axis(options.x_title, x.low, x.high, options.has_log_x, 8);
  panel.y = y_axis(function, y.widened(0.06, options.has_log_y), options);
  return one_panel(options, std::move(panel));
}

Figure bars_figure(std::span<const std::string> categories, std::span<const Bars> series,
                   const ChartOptions& options) {
  check_ends("bars_figure", options);
  check_series(categories, series);
  Panel panel;
  Range y;
  if (!options.has_log_y) y.include(0, false);
  for (const Bars& bars : series) {
    for (const double height : bars.heights) y.include(height, options.has_log_y);
    panel.bars.push_back(bars);
  }
  if (y.is_empty()) throw InvalidArgument("bars_figure: no bar can be drawn on a logarithmic axis");
  Range wide = y.widened(0.08, options.has_log_y);
  if (!options.has_log_y && y.low == 0) wide.low = 0;
  panel.x = figure::category_axis(options.x_title,
                                  {categories, static_cast<std::int64_t>(categories.size())});
  panel.y = y_axis("bars_figure", wide, options);
  return one_panel(options, std::move(panel));
}

Figure temperature_figure(FloatView scores, std::span<const std::string> keys,
                          const ChartOptions& options) {
  constexpr int kPoints = 81;
  check_scores(scores);
  figure::check_labels("temperature_figure", "key", keys.size(), scores.num_elements());
  std::vector<Curve> curves(static_cast<std::size_t>(scores.num_elements()));
  for (int i = 0; i < kPoints; ++i) {
    const double temperature = std::pow(10.0, -1 + 2.0 * i / (kPoints - 1));
    const auto weights = softmax_at(scores, temperature);
    for (std::size_t key = 0; key < curves.size(); ++key) {
      curves[key].name = keys.empty() ? fmt::format("key {}", key) : keys[key];
      curves[key].x.push_back(temperature);
      curves[key].y.push_back(weights[key]);
    }
  }
  ChartOptions full = options;
  if (full.x_title.empty()) full.x_title = "temperature τ (log scale)";
  if (full.y_title.empty()) full.y_title = "weight";
  full.has_log_x = true;
  full.y_low = full.y_low.value_or(0);
  full.y_high = full.y_high.value_or(1);
  return curves_figure(curves, full);
}

}}  // namespace heed::v0
