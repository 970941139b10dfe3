// The picture of the lesson flash-attention: tiles, a row, bytes.
#include <algorithm>
#include <array>
#include <string>

#include "heed/attention/mask.h"
#include "heed/core/random.h"
#include "heed/viz/chart.h"
#include "lessons/drawing.h"
#include "lessons/flash_attention.h"

namespace heed::learn::flash_attention_lesson {

constexpr std::int64_t kDrawn = 16;  // tokens of the drawn matrix
constexpr std::int64_t kDrawnTile = 4;
constexpr Rgb kWholeColor{0x42, 0x92, 0xc6};
constexpr Rgb kDiagonalColor{0x9e, 0xca, 0xe1};
constexpr Rgb kWastedColor{0xfd, 0xae, 0x6b};

// Returns the number of visible pairs in the tile that contains (q, k).
std::int64_t visible_in_tile(const Tensor<bool>& visible, std::int64_t q, std::int64_t k) {
  const std::int64_t first_q = q / kDrawnTile * kDrawnTile;
  const std::int64_t first_k = k / kDrawnTile * kDrawnTile;
  std::int64_t count = 0;
  for (std::int64_t row = first_q; row < first_q + kDrawnTile; ++row) {
    for (std::int64_t key = first_k; key < first_k + kDrawnTile; ++key) {
      count += visible(0, 0, row, key) ? 1 : 0;
    }
  }
  return count;
}

Figure causal_tiles(Theme theme) {
  const ScoreShape shape{.q_len = kDrawn, .kv_len = kDrawn};
  const Tensor<bool> visible = materialize_allow(causal(), shape);
  Panel panel;
  panel.x = {.label = "key", .low = 0, .high = kDrawn};
  panel.y = {.label = "query", .low = kDrawn, .high = 0};
  for (std::int64_t at = 0; at <= kDrawn; at += kDrawnTile) {
    const Tick tick{static_cast<double>(at), std::to_string(at)};
    panel.x.ticks.push_back(tick);
    panel.y.ticks.push_back(tick);
  }
  panel.has_grid = true;
  panel.cells.rows = kDrawn;
  panel.cells.columns = kDrawn;
  for (std::int64_t q = 0; q < kDrawn; ++q) {
    for (std::int64_t k = 0; k < kDrawn; ++k) {
      const std::int64_t seen = visible_in_tile(visible, q, k);
      const bool is_whole = seen == kDrawnTile * kDrawnTile;
      const Rgb of_mixed = visible(0, 0, q, k) ? kDiagonalColor : kWastedColor;
      panel.cells.colors.push_back(is_whole ? kWholeColor : of_mixed);
      panel.cells.is_hatched.push_back(seen == 0);
    }
  }
  panel.swatches = {{"whole tile", kWholeColor},
                    {"visible in a mixed tile", kDiagonalColor},
                    {"computed and hidden", kWastedColor},
                    {"tile not visited", {}}};
  return {.title = "tiles of 4 by 4 of a causal matrix",
          .panels = {std::move(panel)},
          .columns = 1,
          .theme = theme};
}

// Draws one row of drawn scores, and m and l after each tile.
Figure running_row(Theme theme) {
  constexpr std::size_t kRow = 64;
  constexpr std::size_t kKeysOfTile = 8;
  const Tensor<double> drawn = TorchGenerator(0).randn<double>({kRow});
  Curve scores{.name = "score"};
  Curve largest{.name = "maximum m", .has_markers = true};
  Curve sum{.name = "sum l", .has_markers = true};
  RowState state;
  for (std::size_t first = 0; first < kRow; first += kKeysOfTile) {
    const std::span<const double> tile = drawn.elements().subspan(first, kKeysOfTile);
    for (std::size_t k = 0; k < kKeysOfTile; ++k) {
      scores.x.push_back(static_cast<double>(first + k));
      scores.y.push_back(tile[k]);
    }
    state = with_tile(state, tile, std::array<double, kKeysOfTile>{});
    for (Curve* curve : {&largest, &sum})
      curve->x.push_back(static_cast<double>(first + kKeysOfTile - 1));
    largest.y.push_back(state.largest);
    sum.y.push_back(state.sum);
  }
  return curves_figure(std::array{scores, largest, sum}, {.title = "a row of scores, 8 keys a tile",
                                                          .x_title = "key",
                                                          .y_title = "score, or sum",
                                                          .has_names_at_ends = true,
                                                          .theme = theme});
}

Figure bytes_against_length(Theme theme) {
  Curve matrices{.name = "scores, weights", .has_markers = true};
  Curve arguments{.name = "q, k, v, out", .has_markers = true};
  Curve forward{.name = "forward", .has_markers = true};
  Curve backward{.name = "backward", .has_markers = true};
  for (const Bytes& bytes : bytes_of_lengths()) {
    const auto add = [&bytes](Curve& curve, std::int64_t number) {
      curve.x.push_back(static_cast<double>(bytes.length));
      curve.y.push_back(static_cast<double>(number));
    };
    add(matrices, bytes.matrices);
    add(arguments, bytes.arguments);
    add(forward, bytes.forward);
    add(backward, bytes.backward);
  }
  return curves_figure(std::array{matrices, arguments, forward, backward},
                       {.title = "bytes of a head of 64 dimensions",
                        .x_title = "tokens T",
                        .y_title = "memory, bytes",
                        .has_log_x = true,
                        .has_log_y = true,
                        .has_names_at_ends = true,
                        .theme = theme});
}

Figure draw_tiles(Theme theme) {
  return join(
      {.title = "Attention in tiles",
       .note = "Left: tiles above the diagonal are neither read nor computed. Middle: where "
               "m rises, l is multiplied by exp(m_old − m_new). Right: both axes are "
               "logarithmic; forward and backward are heed's workspaces on one thread.",
       .width = 240,
       .height = 240},
      {causal_tiles(theme), running_row(theme), bytes_against_length(theme)}, theme);
}

}  // namespace heed::learn::flash_attention_lesson
