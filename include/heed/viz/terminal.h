/// Matrices as text: heatmaps for a terminal, tables of numbers.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/viz/colormap.h"

namespace heed { inline namespace v0 {

/// The colours of a terminal. kPlain writes no escape sequence at all.
enum class ColorDepth { kPlain, k256, kTrueColor };

/// The capabilities that text is written for.
struct TerminalStyle {
  ColorDepth depth = ColorDepth::kPlain;
  int width = 80;    ///< columns
  bool utf8 = true;  ///< false: characters outside ASCII are replaced
};

/// The style of the terminal or file behind a file descriptor.
///
/// Colour needs a terminal, no NO_COLOR (a non-empty value disables colour) and a TERM other than
/// "dumb"; COLORTERM=truecolor or 24bit then gives kTrueColor, a TERM that contains "256color"
/// gives k256. The width is COLUMNS, otherwise the terminal's, otherwise 80. utf8 is false only
/// where LC_ALL, LC_CTYPE or LANG (the first that is set) names another character set. Files and
/// pipes never get colour: a program that offers this sets `depth` itself.
HEED_API TerminalStyle detect_terminal(int fd);

/// Text that a terminal displays without interpreting it: C0 and C1 controls, DEL, line separators,
/// bidirectional overrides and other invisible format characters, and bytes that are not UTF-8
/// become visible escapes (\n, \x1B, \u{202E}). Everything else is unchanged.
HEED_API std::string sanitize_for_terminal(std::string_view text);

/// The names of rows and columns. An empty span numbers them from 0. A label may contain any bytes:
/// it is sanitised before it is drawn.
struct HeatmapLabels {
  std::span<const std::string> queries = {};  ///< one per row
  std::span<const std::string> keys = {};     ///< one per column
};

/// Further options of render_heatmap.
struct HeatmapOptions {
  /// [q_len, kv_len], true where the query sees the key; other cells, and weights of −inf, are
  /// drawn as a dot. A default-constructed view: all are visible.
  TensorView<const bool> visible = {};
  ColorMap color_map = ColorMap::kViridis;
  /// The weight at the end of the scale, which starts at 0.
  float scale_max = 1;
  /// If true, an explanation of the picture follows it.
  bool legend = true;
};

/// A matrix of attention weights [q_len, kv_len] as a table: one row per query, one column per key,
/// each weight as a colour (or a character, from " " to "@") with its value where it fits, and a
/// legend.
///
/// No line is wider than style.width (at least 20). To fit, labels are cut, key labels are written
/// vertically or replaced by numbers, values are left out and, if there is less than one column per
/// key, blocks of weights are drawn as their largest, with colours two rows per line. The legend
/// says so.
/// @throws InvalidArgument when weights are not of rank 2, the number of labels is neither 0 nor
/// the extent, `visible` has another shape, or scale_max is not positive and finite.
HEED_API std::string render_heatmap(TensorView<const float> weights, const HeatmapLabels& labels,
                                    const TerminalStyle& style, const HeatmapOptions& options = {});

/// The format of render_matrix.
struct MatrixFormat {
  int decimals = 4;                              ///< digits after the decimal point, 0 … 17
  std::span<const std::string> row_labels = {};  ///< one per row, sanitised; empty: none
};

/// A vector or a matrix as aligned numbers, one line per row:
///
///     The [ 0.28  0.32  0.40]
///     cat [-1.00   nan   inf]
///
/// @throws InvalidArgument when the rank is not 1 or 2, decimals are out of range or the number of
/// labels is neither 0 nor the number of rows.
HEED_API std::string render_matrix(TensorView<const float> matrix, const MatrixFormat& format = {});
HEED_API std::string render_matrix(TensorView<const double> matrix,
                                   const MatrixFormat& format = {});

}}  // namespace heed::v0
