/// Figures of attention: weights, masks, position encodings.
///
/// In every figure a row is a query and a column a key. docs/seeing.md shows them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/viz/colormap.h"
#include "heed/viz/figure.h"

namespace heed { inline namespace v0 {

/// The map from a weight w to a position p in the colour map, 0 to 1, with m the end of the scale.
enum class ColorScale {
  kLinear,  ///< p = w / m
  kLog,     ///< p = 1 + log₁₀(w / m) / 4: four decades; smaller weights are at 0
  kPerRow,  ///< p = w / the largest weight of its row
};

/// The options of figures of weights.
struct AttentionFigureOptions {
  std::string title = {};
  std::string note = {};
  /// The names of queries and keys, one each; empty: numbers.
  std::span<const std::string> queries = {};
  std::span<const std::string> keys = {};
  std::string query_title = "query";
  std::string key_title = "key";
  /// The titles of the panels, one each; empty: "head 0", …
  std::span<const std::string> panels = {};
  /// [q_len, kv_len] or the shape of the weights: true where the query sees the key; other cells
  /// are hatched, as is a weight of −infinity. A default-constructed view: all are visible.
  TensorView<const bool> visible = {};
  /// kRdBu is centred at 0: its scale is −m to m if a number is negative, otherwise 0 to m. With a
  /// dark theme, maps that end dark are reversed, so that large weights are bright.
  ColorMap color_map = ColorMap::kViridis;
  ColorScale scale = ColorScale::kLinear;
  /// m, the end of the scale; by default the largest magnitude of all panels, and on a linear scale
  /// of numbers that are not negative, with all keys, at least least_scale_end().
  std::optional<float> scale_max = {};
  /// True if each panel has its own m and its own colour bar.
  bool scales_panels_apart = false;
  /// Leaves out key 0, which often has most of the attention and dominates the scale.
  bool hides_first_key = false;
  /// Digits after the decimal point of the values in the cells, which are drawn if all of them fit;
  /// negative: none.
  int decimals = 2;
  std::int64_t columns = 0;  ///< panels per row; 0: automatic
  Theme theme = Theme::kLight;
};

/// One heatmap [q_len, kv_len], or one per head [num_heads, q_len, kv_len]. A matrix with more rows
/// or columns than fit is drawn in blocks that show their largest weight, so that no single cell
/// disappears; the note then says so.
/// @throws InvalidArgument when shapes, labels or options do not fit, or a dimension is empty.
HEED_API Figure attention_figure(FloatView weights, const AttentionFigureOptions& options = {});

/// Weights [num_layers, num_heads, q_len, kv_len] as small pictures, with a row for each layer and
/// a column for each head. The options `panels` and `columns` are ignored.
/// @throws InvalidArgument as attention_figure does.
HEED_API Figure overview_figure(FloatView weights, const AttentionFigureOptions& options = {});

/// a − b of two heads or runs of one shape, [q_len, kv_len] or [num_heads, q_len, kv_len], from red
/// (negative) over white (equal) to blue (positive); the option `color_map` is ignored.
/// @throws InvalidArgument as attention_figure does, and when the shapes differ.
HEED_API Figure difference_figure(FloatView a, FloatView b,
                                  const AttentionFigureOptions& options = {});

/// The options of mask_figure().
struct MaskFigureOptions {
  std::string title = {};
  std::string note = {};
  std::span<const std::string> queries = {};
  std::span<const std::string> keys = {};
  std::string query_title = "query";
  std::string key_title = "key";
  std::span<const std::string> panels = {};  ///< the titles of the panels, or empty
  /// The colours of visible and masked cells; without the second these are hatched.
  Rgb visible_color{0x9e, 0xca, 0xe1};
  std::optional<Rgb> masked_color = {};
  /// The texts in the cells.
  std::string visible_mark = "✓";
  std::string masked_mark = "✗";
  Theme theme = Theme::kLight;
};

/// Masks: [q_len, kv_len], or several [num_masks, q_len, kv_len]. The legend names the colours that
/// were drawn. A large mask is drawn in blocks, which are visible if any of their cells is.
/// @throws InvalidArgument as attention_figure does.
HEED_API Figure mask_figure(TensorView<const bool> visible, const MaskFigureOptions& options = {});

/// The options of figures of position encodings.
struct PositionFigureOptions {
  std::string title = {};
  std::string note = {};
  std::string bar_title = "value";
  Theme theme = Theme::kLight;
};

/// A position encoding [max_len, d_model] as an image, with positions horizontally and dimensions
/// vertically, from −m (red) over 0 (white) to m (blue).
/// @throws InvalidArgument when it is not a matrix or is empty.
HEED_API Figure position_figure(FloatView encoding, const PositionFigureOptions& options = {});

/// Dimensions d and d + 1 of a position encoding as curves, a panel for each d of `dimensions`.
/// @throws InvalidArgument when d + 1 is not below d_model, or there is none.
HEED_API Figure dimensions_figure(FloatView encoding, std::span<const std::int64_t> dimensions,
                                  const PositionFigureOptions& options = {});

}}  // namespace heed::v0
