// The picture of the lesson linear-attention: similarities, operations, and the capacity of a
// state.
#include <array>
#include <cmath>
#include <string>

#include "heed/viz/chart.h"
#include "lessons/drawing.h"
#include "lessons/linear_attention.h"

namespace heed::learn::linear_attention_lesson {

namespace {

// Draws the weight of a one-dimensional key for the query 1, when the other key is 3.
Figure similarities(Theme theme) {
  constexpr int kPoints = 48;
  Curve softmax{.name = "exp(q k)"};
  Curve elu{.name = "elu+1"};
  Curve relu{.name = "relu"};
  const auto similarity = [](FeatureMap map, double key) {
    return feature(map, 1) * feature(map, key) / (feature(map, 1) * feature(map, 3));
  };
  for (int i = 0; i <= kPoints; ++i) {
    const double key = -3 + 6.0 * i / kPoints;
    for (Curve* curve : {&softmax, &elu, &relu}) curve->x.push_back(key);
    softmax.y.push_back(std::exp(key - 3));
    elu.y.push_back(similarity(FeatureMap::kEluPlusOne, key));
    relu.y.push_back(similarity(FeatureMap::kRelu, key));
  }
  return curves_figure(std::array{softmax, elu, relu}, {.title = "weight of a key k, for q = 1",
                                                        .x_title = "key k",
                                                        .y_title = "weight / weight of k = 3",
                                                        .theme = theme});
}

Figure products(Theme theme) {
  Curve weights{.name = "weights first", .has_markers = true};
  Curve state{.name = "state first", .has_markers = true};
  for (const Products& at : products_of_lengths()) {
    const auto add = [&at](Curve& curve, std::int64_t count) {
      curve.x.push_back(static_cast<double>(at.length));
      curve.y.push_back(static_cast<double>(count));
    };
    add(weights, at.weights_first);
    add(state, at.state_first);
  }
  return curves_figure(std::array{weights, state},
                       {.title = "multiply-adds of a head of 64 dimensions",
                        .x_title = "tokens T",
                        .y_title = "multiply-adds",
                        .has_log_x = true,
                        .has_log_y = true,
                        .theme = theme});
}

Figure recall(Theme theme) {
  std::vector<Curve> curves;
  curves.reserve(kStores.size());
  for (const std::string_view store : kStores) {
    curves.push_back({.name = std::string(store), .has_markers = true});
  }
  for (const Recall& at : recall_of_pairs()) {
    for (std::size_t i = 0; i < curves.size(); ++i) {
      curves[i].x.push_back(static_cast<double>(at.pairs));
      curves[i].y.push_back(100 * at.share[i]);
    }
  }
  return curves_figure(curves, {.title = "pairs given back right, 16 dimensions",
                                .x_title = "pairs stored",
                                .y_title = "given back right, %",
                                .has_log_x = true,
                                .y_low = -3,
                                .y_high = 103,
                                .theme = theme});
}

}  // namespace

Figure draw_linear_attention(Theme theme) {
  return join({.title = "Attention through a state",
               .note = "Middle: both axes are logarithmic; the orders cost the same at T = d. "
                       "Right: softmax keeps every pair, the others 16 × 16 numbers.",
               .width = 270,
               .height = 240},
              {similarities(theme), products(theme), recall(theme)}, theme);
}

}  // namespace heed::learn::linear_attention_lesson
