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

/// How a weight w becomes a place p between the ends of the colour map, with m the end of the
/// scale.
enum class ColorScale {
  kLinear,  ///< p = w / m
  kLog,     ///< p = 1 + log₁₀(w / m) / 4: four decades; all that is smaller is at the start
  kPerRow,  ///< p = w / the largest weight of its row
};

struct AttentionFigureOptions {
  std::string title = {};
  std::string note = {};
  /// The names of queries and keys, none (then they are numbered) or one each.
  std::span<const std::string> queries = {};
  std::span<const std::string> keys = {};
  std::string query_title = "query";
  std::string key_title = "key";
  /// The titles of the panels, none ("head 0", …) or one each.
  std::span<const std::string> panels = {};
  /// [q_len, kv_len] or the shape of the weights: true where the query sees the key; what it does
  /// not see is hatched, as is a weight of −infinity. A default-constructed view: all is seen.
  TensorView<const bool> visible = {};
  /// kRdBu is centred at 0: its scale goes from −m over 0 to m where a number is negative, and from
  /// 0 to m where none is. On a dark ground maps that end dark are turned round, so that what is
  /// strong is bright.
  ColorMap color_map = ColorMap::kViridis;
  ColorScale scale = ColorScale::kLinear;
  /// m, the end of the scale; without it the largest magnitude of all panels, and on a linear scale
  /// of nothing negative that has all keys at least least_scale_end().
  std::optional<float> scale_max = {};
  /// Each panel has its own m and its own colour bar.
  bool scales_panels_apart = false;
  /// Leaves out key 0, which often draws most of the attention and flattens the scale.
  bool hides_first_key = false;
  /// Digits after the point of the values in the cells, which are drawn where all of them fit;
  /// negative: none.
  int decimals = 2;
  std::int64_t columns = 0;  ///< panels next to each other; 0: as it looks best
  Theme theme = Theme::kLight;
};

/// One heatmap [q_len, kv_len], or one per head [num_heads, q_len, kv_len]. A matrix with more rows
/// or columns than fit is drawn in blocks, each the strongest of its weights, so that no single
/// cell is ever hidden; the note then says so.
/// @throws InvalidArgument when shapes, labels or options do not fit; nothing is empty.
HEED_API Figure attention_figure(FloatView weights, const AttentionFigureOptions& options = {});

/// Weights [num_layers, num_heads, q_len, kv_len] as small pictures: a row of them is a layer, a
/// column a head. `panels` and `columns` are not read.
HEED_API Figure overview_figure(FloatView weights, const AttentionFigureOptions& options = {});

/// a − b of two heads or runs of one shape, [q_len, kv_len] or [num_heads, q_len, kv_len], from red
/// (less) over white (the same) to blue (more), whatever `color_map` says.
HEED_API Figure difference_figure(FloatView a, FloatView b,
                                  const AttentionFigureOptions& options = {});

struct MaskFigureOptions {
  std::string title = {};
  std::string note = {};
  std::span<const std::string> queries = {};
  std::span<const std::string> keys = {};
  std::string query_title = "query";
  std::string key_title = "key";
  std::span<const std::string> panels = {};  ///< none, or one per panel
  /// The colours of what is visible and what is masked; without the second it is hatched.
  Rgb visible_color{0x9e, 0xca, 0xe1};
  std::optional<Rgb> masked_color = {};
  /// What stands in the cells.
  std::string visible_mark = "✓";
  std::string masked_mark = "✗";
  Theme theme = Theme::kLight;
};

/// Which query sees which key: [q_len, kv_len], or several masks [num_masks, q_len, kv_len]. The
/// legend names the colours that were drawn. A large mask is drawn in blocks: one counts as visible
/// when any of its cells is.
/// @throws InvalidArgument as attention_figure does.
HEED_API Figure mask_figure(TensorView<const bool> visible, const MaskFigureOptions& options = {});

struct PositionFigureOptions {
  std::string title = {};
  std::string note = {};
  std::string bar_title = "value";
  Theme theme = Theme::kLight;
};

/// A position encoding [max_len, d_model] as an image, positions across and dimensions down, from
/// −m (red) over 0 (white) to m (blue).
/// @throws InvalidArgument when it is not a matrix or is empty.
HEED_API Figure position_figure(FloatView encoding, const PositionFigureOptions& options = {});

/// Dimensions d and d + 1 of a position encoding as curves, a panel for each d of `dimensions`.
/// @throws InvalidArgument when d + 1 is not below d_model, or there is none.
HEED_API Figure dimensions_figure(FloatView encoding, std::span<const std::int64_t> dimensions,
                                  const PositionFigureOptions& options = {});

}}  // namespace heed::v0
