// Pictures of masks, position encodings and temperatures.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gallery/pictures.h"
#include "heed/attention/mask.h"
#include "heed/attention/position.h"
#include "heed/attention/reference.h"
#include "heed/core/random.h"
#include "heed/viz/attention_figure.h"
#include "heed/viz/chart.h"

namespace heed::learn {

namespace {

constexpr Rgb kBlack{0, 0, 0};
constexpr Rgb kWhite{255, 255, 255};

Tensor<bool> causal_of_six() {
  return materialize_allow(causal(), {.q_len = 6, .kv_len = 6}).reshaped({6, 6});
}

struct Inputs {
  Tensor<float> query;
  Tensor<float> key;
};

// Returns the first two of three draws of randn(1, 4, 8) after manual_seed(42).
Inputs draw_inputs() {
  TorchGenerator generator(42);
  auto query = generator.randn({1, 1, 4, 8});
  auto key = generator.randn({1, 1, 4, 8});
  return {std::move(query), std::move(key)};
}

}  // namespace

Figure draw_causal_mask(Theme theme) {
  return mask_figure(causal_of_six(), {.title = "Causal Mask",
                                       .query_title = "Query Position",
                                       .key_title = "Key Position (can attend to)",
                                       .visible_color = kWhite,
                                       .masked_color = kBlack,
                                       .theme = theme});
}

Figure draw_mask_digits(Theme theme) {
  constexpr int kPositions = 6;
  std::vector<std::string> names;
  names.reserve(kPositions);
  for (int i = 0; i < kPositions; ++i) names.push_back("Pos " + std::to_string(i));
  // The end colours of a map from red over yellow to green.
  return mask_figure(causal_of_six(), {.title = "Causal Mask (1 = Masked, 0 = Visible)",
                                       .queries = names,
                                       .keys = names,
                                       .query_title = "Query Position",
                                       .key_title = "Key Position",
                                       .visible_color = {0x00, 0x68, 0x37},
                                       .masked_color = Rgb{0xa5, 0x00, 0x26},
                                       .visible_mark = "0",
                                       .masked_mark = "1",
                                       .theme = theme});
}

Figure draw_padding_mask(Theme theme) {
  const Tensor<std::int64_t> ids({2, 6}, {5, 3, 7, 2, 0, 0, 8, 1, 4, 6, 9, 0});
  const std::vector<std::string> titles{"5 3 7 2 0 0", "8 1 4 6 9 0"};
  const auto visible = materialize_allow(key_padding(ids, 0), {.batch = 2, .q_len = 6, .kv_len = 6})
                           .reshaped({2, 6, 6});
  return mask_figure(visible, {.title = "Padding masks of two sentences",
                               .note = "Token 0 is padding.",
                               .query_title = "query position",
                               .key_title = "key position",
                               .panels = titles,
                               .theme = theme});
}

Figure draw_positions_64(Theme theme) {
  return position_figure(
      sinusoidal_encoding(50, 64),
      {.title = "Sinusoidal Positional Encoding (d=64)", .bar_title = "Value", .theme = theme});
}

Figure draw_positions_128(Theme theme) {
  return position_figure(
      sinusoidal_encoding(100, 128),
      {.title = "Sinusoidal Positional Encoding", .bar_title = "Encoding Value", .theme = theme});
}

Figure draw_position_dimensions(Theme theme) {
  constexpr std::array<std::int64_t, 4> kDimensions{0, 20, 40, 60};
  return dimensions_figure(sinusoidal_encoding(100, 128), kDimensions,
                           {.title = "Single dimensions of the positional encoding",
                            .bar_title = "Value",
                            .theme = theme});
}

Figure draw_temperatures(Theme theme) {
  constexpr std::array<double, 3> kTemperatures{0.5, 1, 2};
  const std::vector<std::string> titles{"Temperature 0.5", "Temperature 1.0", "Temperature 2.0"};
  const Inputs inputs = draw_inputs();
  Tensor<float> weights({3, 4, 4});
  float* out = weights.data();
  for (const double temperature : kTemperatures) {
    const AttentionOptions options{.scale = static_cast<float>(1 / (std::sqrt(8.0) * temperature))};
    const auto result = reference::attention(inputs.query, inputs.key, inputs.key, options,
                                             reference::Keep::kWeights);
    const auto elements = result.weights.elements();
    out = std::copy(elements.begin(), elements.end(), out);
  }
  return attention_figure(weights, {.title = "The same scores at three temperatures",
                                    .query_title = "query position",
                                    .key_title = "key position",
                                    .panels = titles,
                                    .color_map = ColorMap::kBlues,
                                    .scale_max = 1.0F,
                                    .theme = theme});
}

Figure draw_temperature_curves(Theme theme) {
  const Inputs inputs = draw_inputs();
  const auto scores =
      reference::attention(inputs.query, inputs.key, inputs.key, {}, reference::Keep::kScores)
          .scores;
  return temperature_figure(scores.view().select(0, 0).select(0, 0).select(0, 0), {},
                            {.title = "One query from cold to hot", .theme = theme});
}

}  // namespace heed::learn
