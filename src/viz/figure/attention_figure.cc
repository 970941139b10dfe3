#include "heed/viz/attention_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "heed/core/error.h"
#include "viz/figure/matrix_panel.h"
#include "viz/figure/scales.h"

namespace heed { inline namespace v0 {
namespace {

using figure::ColorRange;
using figure::Grid;

constexpr int kOverviewExtent = 72;
constexpr int kMaxDecimals = 9;

void check_options(const char* function, const AttentionFigureOptions& options) {
  if (options.scale_max && !(std::isfinite(*options.scale_max) && *options.scale_max > 0)) {
    throw InvalidArgument(fmt::format("{}: scale_max is {}, expected a positive number", function,
                                      *options.scale_max));
  }
  if (options.decimals > kMaxDecimals || options.columns < 0) {
    throw InvalidArgument(
        fmt::format("{}: decimals is {} and columns is {}, expected at most {} and at least 0",
                    function, options.decimals, options.columns, kMaxDecimals));
  }
}

// Matrices [panels, q_len, kv_len] with a mask of that shape or none.
struct Matrices {
  FloatView weights;
  TensorView<const bool> visible;
};

Matrices checked_matrices(const char* function, FloatView weights,
                          const AttentionFigureOptions& options) {
  check_options(function, options);
  const Shape shape = weights.shape();
  figure::check_labels(function, "query", options.queries.size(), shape[-2]);
  figure::check_labels(function, "key", options.keys.size(), shape[-1]);
  Matrices result{weights, {}};
  if (options.visible.data() != nullptr) {
    const Shape& mask = options.visible.shape();
    if (mask != shape && mask != Shape{shape[-2], shape[-1]}) {
      throw InvalidArgument(fmt::format("{}: visible is {} but weights are {}", function,
                                        to_string(mask), to_string(shape)));
    }
    result.visible = options.visible.broadcast_to(shape);
  }
  if (options.hides_first_key) {
    if (shape[-1] < 2) {
      throw InvalidArgument(
          fmt::format("{}: hides_first_key leaves no key of {}", function, shape[-1]));
    }
    result.weights = weights.slice(-1, 1, shape[-1]);
    if (result.visible.data() != nullptr) result.visible = result.visible.slice(-1, 1, shape[-1]);
  }
  return result;
}

figure::MatrixNames names_of(const AttentionFigureOptions& options) {
  figure::MatrixNames names{options.queries, options.keys, options.query_title, options.key_title};
  if (options.hides_first_key) {
    names.first_key = 1;
    if (!names.keys.empty()) names.keys = names.keys.subspan(1);
  }
  return names;
}

std::vector<Grid> pool_all(const Matrices& matrices, int target, bool by_magnitude) {
  std::vector<Grid> grids;
  for (std::int64_t i = 0; i < matrices.weights.extent(0); ++i) {
    const auto visible = matrices.visible.data() == nullptr ? TensorView<const bool>()
                                                            : matrices.visible.select(0, i);
    grids.push_back(figure::pool(matrices.weights.select(0, i), visible, target, by_magnitude));
  }
  return grids;
}

// The signs of a scale: those of the numbers, if the map can show negative ones, or both.
enum class Signs { kOfTheNumbers, kBoth };

// The scale of one panel, or of several that share it.
ColorRange range_of(std::span<const Grid> grids, const AttentionFigureOptions& options,
                    Signs signs) {
  ColorRange range{.map = options.color_map, .scale = options.scale, .theme = options.theme};
  range.is_signed =
      signs == Signs::kBoth || (options.color_map == ColorMap::kRdBu &&
                                std::any_of(grids.begin(), grids.end(), figure::has_negative));
  // Without the first key the rows do not add up to 1, so the scale ends at the largest of the
  // other weights.
  if (!range.is_signed && range.scale == ColorScale::kLinear && !options.hides_first_key) {
    range.max = least_scale_end(grids.front().columns * grids.front().column_block);
  } else {
    range.max = 0;
  }
  for (const Grid& grid : grids) range.max = std::max(range.max, figure::largest_magnitude(grid));
  if (options.scale_max) range.max = *options.scale_max;
  if (range.max == 0) range.max = 1;
  return range;
}

std::string note_of(const AttentionFigureOptions& options, const Grid& grid) {
  std::string note = figure::joined_notes(options.note, figure::pooling_note(grid));
  if (options.hides_first_key) {
    note = figure::joined_notes(
        note, fmt::format("Key {} is left out.", options.keys.empty() ? "0" : options.keys[0]));
  }
  return note;
}

std::string bar_title(const ColorRange& range) {
  return range.scale == ColorScale::kLog ? "weight (log scale)" : "weight";
}

// Panels of pooled matrices; the last panel in each row has the common colour bar.
Figure draw_panels(const std::vector<Grid>& grids, const AttentionFigureOptions& options,
                   std::int64_t columns, int target, Signs signs) {
  Figure result{.title = options.title,
                .note = note_of(options, grids.front()),
                .columns = columns,
                .theme = options.theme};
  const ColorRange shared = range_of(grids, options, signs);
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const ColorRange range =
        options.scales_panels_apart ? range_of({&grids[i], 1}, options, signs) : shared;
    Panel panel = figure::matrix_panel(grids[i], names_of(options), target);
    panel.cells = figure::color_cells(grids[i], range, options.decimals);
    const auto next = static_cast<std::int64_t>(i) + 1;
    const bool ends_row = next % columns == 0 || i + 1 == grids.size();
    if (ends_row || options.scales_panels_apart) {
      panel.color_bar = figure::color_bar(range, bar_title(range));
    }
    if (!options.panels.empty()) {
      panel.title = options.panels[i];
    } else if (grids.size() > 1) {
      panel.title = fmt::format("head {}", i);
    }
    result.panels.push_back(std::move(panel));
  }
  return result;
}

Figure draw_matrices(const char* function, FloatView weights, const AttentionFigureOptions& options,
                     Signs signs) {
  const FloatView matrices = weights.rank() == 2 ? weights.to_rank(3) : weights;
  const Matrices checked = checked_matrices(function, matrices, options);
  const std::int64_t count = matrices.extent(0);
  figure::check_labels(function, "panel", options.panels.size(), count);
  const int target = figure::target_extent(count);
  const std::int64_t columns =
      options.columns > 0 ? options.columns : figure::default_columns(count);
  const bool by_magnitude = options.color_map == ColorMap::kRdBu;
  return draw_panels(pool_all(checked, target, by_magnitude), options, columns, target, signs);
}

}  // namespace

Figure attention_figure(FloatView weights, const AttentionFigureOptions& options) {
  figure::check_matrices("attention_figure", "weights", weights.shape(), 3);
  return draw_matrices("attention_figure", weights, options, Signs::kOfTheNumbers);
}

Figure difference_figure(FloatView a, FloatView b, const AttentionFigureOptions& options) {
  figure::check_matrices("difference_figure", "weights", a.shape(), 3);
  if (a.shape() != b.shape()) {
    throw InvalidArgument(fmt::format("difference_figure: a is {} but b is {}",
                                      to_string(a.shape()), to_string(b.shape())));
  }
  Tensor<float> difference = to_tensor(a);
  float* value = difference.data();
  for_each_element(b, [&value](float subtracted) { *value++ -= subtracted; });
  AttentionFigureOptions signed_options = options;
  signed_options.color_map = ColorMap::kRdBu;
  Figure result = draw_matrices("difference_figure", difference, signed_options, Signs::kBoth);
  for (Panel& panel : result.panels) {
    if (panel.color_bar && options.scale != ColorScale::kPerRow) {
      panel.color_bar->axis.label = "difference of the weights";
    }
  }
  return result;
}

Figure overview_figure(FloatView weights, const AttentionFigureOptions& options) {
  const char* function = "overview_figure";
  if (weights.rank() != 4 || weights.empty()) {
    throw InvalidArgument(
        fmt::format("{}: weights are {}, expected [num_layers, num_heads, q_len, kv_len] with no "
                    "extent of 0",
                    function, to_string(weights.shape())));
  }
  const std::int64_t num_heads = weights.extent(1);
  AttentionFigureOptions bare = options;
  bare.panels = {};
  bare.decimals = -1;
  std::vector<Grid> grids;
  const bool by_magnitude = options.color_map == ColorMap::kRdBu;
  for (std::int64_t layer = 0; layer < weights.extent(0); ++layer) {
    AttentionFigureOptions of_layer = options;
    if (options.visible.rank() == 4) of_layer.visible = options.visible.select(0, layer);
    const auto matrices = checked_matrices(function, weights.select(0, layer), of_layer);
    auto pooled = pool_all(matrices, kOverviewExtent, by_magnitude);
    std::move(pooled.begin(), pooled.end(), std::back_inserter(grids));
  }
  Figure result = draw_panels(grids, bare, num_heads, kOverviewExtent, Signs::kOfTheNumbers);
  for (std::size_t i = 0; i < result.panels.size(); ++i) {
    Panel& panel = result.panels[i];
    const auto layer = static_cast<std::int64_t>(i) / num_heads;
    const auto head = static_cast<std::int64_t>(i) % num_heads;
    panel.title = layer == 0 ? fmt::format("head {}", head) : "";
    panel.x.label.clear();
    panel.y.label = head == 0 ? fmt::format("layer {}", layer) : "";
    panel.x.ticks.clear();
    panel.y.ticks.clear();
    if (!panel.color_bar) continue;
    Axis& bar = panel.color_bar->axis;
    bar.label = "weight";
    if (options.scale == ColorScale::kPerRow) {
      bar.label.clear();
      bar.ticks = {{bar.low, bar.low < 0 ? "-row max" : "0"}, {bar.high, "row max"}};
    } else if (options.scale == ColorScale::kLinear) {
      // Few ticks, so that both ends have one.
      bar = figure::number_axis(bar.label, bar.low, bar.high, false, 3);
    }
  }
  if (options.scale == ColorScale::kPerRow) {
    result.note = figure::joined_notes(
        result.note, "Colours: a weight's share of the largest weight of its row.");
  }
  return result;
}

}}  // namespace heed::v0
