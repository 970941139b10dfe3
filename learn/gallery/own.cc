// Pictures of inputs that heed draws itself.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "gallery/pictures.h"
#include "heed/attention.h"
#include "heed/attention/statistics.h"
#include "heed/core/random.h"
#include "heed/inspect/sentence.h"
#include "heed/nn/functional.h"
#include "heed/viz/attention_figure.h"
#include "heed/viz/chart.h"
#include "lessons/short_sequence.h"

namespace heed::learn {

namespace {

constexpr const char* kGallerySentence =
    "The animal didn't cross the street because it was too tired";

inspect::SentenceAttention sentence_attention() {
  return inspect::attend(kGallerySentence, {.num_heads = 4, .d_model = 64, .seed = 0});
}

}  // namespace

// Each layer adds its attention output to its input, as transformers do.
Figure draw_layers_and_heads(Theme theme) {
  constexpr std::int64_t kLayers = 4;
  constexpr std::int64_t kHeads = 6;
  constexpr std::int64_t kLength = 12;
  constexpr std::int64_t kWidth = 48;
  TorchGenerator generator(0);
  Tensor<float> x = generator.randn({1, kLength, kWidth});
  Tensor<float> weights({kLayers, kHeads, kLength, kLength});
  float* out = weights.data();
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    const auto parameters = attention_init(generator, kWidth, kWidth);
    const auto attended = multi_head_attention(x, x, parameters, kHeads, {.mask = causal()});
    const auto elements = attended.weights.elements();
    out = std::copy(elements.begin(), elements.end(), out);
    for (std::int64_t i = 0; i < x.num_elements(); ++i) x.data()[i] += attended.out.data()[i];
  }
  const auto visible = materialize_allow(causal(), {.q_len = kLength, .kv_len = kLength})
                           .reshaped({kLength, kLength});
  return overview_figure(weights, {.title = "Layers and heads at a glance",
                                   .note = "Random parameters (seed 0), causal mask; each panel "
                                           "has a query in a row and a key in a column.",
                                   .visible = visible,
                                   .scale = ColorScale::kPerRow,
                                   .theme = theme});
}

Figure draw_difference(Theme theme) {
  const inspect::SentenceAttention attention = sentence_attention();
  return difference_figure(attention.weights.view().select(0, 0),
                           attention.weights.view().select(0, 1),
                           {.title = "Head 0 − head 1",
                            .note = "Random parameters (seed 0), causal mask.",
                            .queries = attention.labels,
                            .keys = attention.labels,
                            .visible = attention.visible,
                            .theme = theme});
}

// Draws the keys of a sentence with an extra first key that every query prefers.
Figure draw_first_key_hidden(Theme theme) {
  constexpr std::int64_t kLength = 16;
  TorchGenerator generator(0);
  const auto query = generator.randn({1, 1, kLength, 16});
  const auto key = generator.randn({1, 1, kLength, 16});
  const Mask mask = causal();
  Tensor<float> bias({1, 1, 1, kLength});
  bias(0, 0, 0, 0) = 4;
  std::vector<AttentionRow> rows;
  for (std::int64_t i = 0; i < kLength; ++i) rows.push_back({.query = i});
  const auto weights = attention_weights(query, key, rows, {.mask = mask, .bias = bias});
  const auto visible =
      materialize_allow(mask, {.q_len = kLength, .kv_len = kLength}).reshaped({kLength, kLength});
  AttentionFigureOptions options{.title = "An attention sink, and what it hides",
                                 .note = "Right: without key 0. One scale for each.",
                                 .visible = visible,
                                 .decimals = -1,
                                 .theme = theme};
  Figure figure = attention_figure(weights, options);
  options.hides_first_key = true;
  figure.panels.push_back(attention_figure(weights, options).panels.front());
  figure.panels[0].title = "all keys";
  figure.panels[1].title = "key 0 left out";
  figure.columns = 2;
  return figure;
}

Figure draw_head_entropy(Theme theme) {
  const ShortSequence example;
  const FloatView weights = example.attended.weights.view().select(0, 0);
  std::vector<std::string> heads;
  Bars bars{"mean entropy of the rows", {}};
  for (std::int64_t head = 0; head < weights.extent(0); ++head) {
    double sum = 0;
    for_each_element(weights.select(0, head), [&sum](float weight) {
      if (weight > 0) sum -= weight * std::log(weight);
    });
    heads.push_back(std::to_string(head));
    bars.heights.push_back(sum / static_cast<double>(weights.extent(1)));
  }
  return bars_figure(heads, std::array{bars},
                     {.title = "How widely each head looks",
                      .note = "The heads of the picture causal-heads.",
                      .x_title = "head",
                      .y_title = "mean entropy, nats",
                      .theme = theme});
}

Figure draw_operations(Theme theme) {
  constexpr double kWidth = 512;
  Curve recurrent{"recurrent network: n · d²", {}, {}, true};
  Curve attention{"attention: n² · d", {}, {}, true};
  for (double length = 16; length <= 16384; length *= 4) {
    recurrent.x.push_back(length);
    recurrent.y.push_back(length * kWidth * kWidth);
    attention.x.push_back(length);
    attention.y.push_back(length * length * kWidth);
  }
  return curves_figure(std::array{recurrent, attention}, {.title = "Operations against length",
                                                          .note = "Counted, not timed: d = 512.",
                                                          .x_title = "length n, tokens",
                                                          .y_title = "operations",
                                                          .has_log_x = true,
                                                          .has_log_y = true,
                                                          .theme = theme});
}

}  // namespace heed::learn
