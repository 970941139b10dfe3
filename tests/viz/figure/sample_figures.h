// The figures in the golden files in tests/data/figures.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "heed/attention/mask.h"
#include "heed/attention/position.h"
#include "heed/viz/attention_figure.h"
#include "heed/viz/chart.h"

namespace heed::testing_support {

inline Tensor<bool> causal_square(std::int64_t length) {
  return materialize_allow(causal(), {.q_len = length, .kv_len = length})
      .reshaped({length, length});
}

// Causal weights of three words, one of which contains markup.
inline Figure sample_weights(Theme theme = Theme::kLight) {
  const std::vector<std::string> words{"The", "<b>&", "été"};
  const Tensor<float> weights({3, 3}, {1, 9, 9, 0.25F, 0.75F, 9, 0, 0.125F, 0.875F});
  const Tensor<bool> visible = causal_square(3);
  return attention_figure(weights, {.title = "Three <words> & a mask",
                                    .note = "The first row sees itself only.",
                                    .queries = words,
                                    .keys = words,
                                    .visible = visible,
                                    .theme = theme});
}

inline Figure sample_mask() { return mask_figure(causal_square(4), {.title = "Causal mask"}); }

inline Figure sample_curves() {
  const std::array curves{Curve{"n²", {16, 64, 256}, {256, 4096, 65536}, true},
                          Curve{"n", {16, 64, 256}, {16, 64, 256}, true}};
  return curves_figure(curves, {.title = "Growth",
                                .x_title = "n",
                                .y_title = "operations",
                                .has_log_x = true,
                                .has_log_y = true});
}

inline Figure sample_bars() {
  const std::vector<std::string> names{"dot", "general"};
  const std::array bars{Bars{"first", {1, 2}}, Bars{"second", {1.5, 0.5}}};
  return bars_figure(names, bars, {.title = "Bars", .y_title = "score", .theme = Theme::kDark});
}

// Adjoining cells: an image within the picture.
inline Figure sample_positions() {
  return position_figure(sinusoidal_encoding(20, 16), {.title = "Positions"});
}

}  // namespace heed::testing_support
