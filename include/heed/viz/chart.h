/// Figures of measurements: curves and bars.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/viz/figure.h"

namespace heed { inline namespace v0 {

/// The options of figures of measurements.
struct ChartOptions {
  std::string title = {};
  std::string note = {};
  std::string x_title = {};
  std::string y_title = {};
  bool has_log_x = false;  ///< true leaves out points that are not positive
  bool has_log_y = false;
  /// The ends of the y axis; by default from the data.
  std::optional<double> y_low = {};
  std::optional<double> y_high = {};
  bool has_names_at_ends = false;  ///< true: names of curves right of them, not in a legend
  Theme theme = Theme::kLight;
};

/// Curves over a common x axis: a loss against steps, BLEU against length, time against length
/// with both axes logarithmic.
/// @throws InvalidArgument when a curve has different numbers of x and y, no point can be drawn, or
/// an end of the axis is not finite, not positive on a logarithmic axis, or not below the other.
HEED_API Figure curves_figure(std::span<const Curve> curves, const ChartOptions& options = {});

/// Grouped bars, a group for each category. The axis includes 0, unless it is logarithmic.
/// @throws InvalidArgument when a series does not have one height per category, a height is not
/// finite, or there is none.
HEED_API Figure bars_figure(std::span<const std::string> categories, std::span<const Bars> series,
                            const ChartOptions& options = {});

/// The weights softmax(scores / τ) of one query for τ from 0.1 to 10, a curve for each key.
/// @param scores [kv_len]: the input of softmax at τ = 1
/// @param keys   their names, one each, or empty
/// @throws InvalidArgument when scores are not a vector of finite numbers or of −infinity (a masked
/// key), no key is visible, or labels do not fit.
HEED_API Figure temperature_figure(FloatView scores, std::span<const std::string> keys = {},
                                   const ChartOptions& options = {});

}}  // namespace heed::v0
