#include <array>
#include <cmath>

#include "heed/attention/reference.h"
#include "heed/core/random.h"
#include "heed/viz/chart.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"

namespace heed::learn {

namespace scaling_lesson {

using reference::Keep;

constexpr std::int64_t kDraws = 2000;

double root(std::int64_t head_dim) { return std::sqrt(static_cast<double>(head_dim)); }

// Returns `count` dot products of normal vectors: one query and one key per batch entry.
Tensor<float> dot_products(TorchGenerator& generator, std::int64_t count, std::int64_t head_dim) {
  const Shape shape{count, 1, 1, head_dim};
  const auto query = generator.randn(shape);
  const auto key = generator.randn(shape);
  return reference::attention(query, key, key, {.scale = 1.0F}, Keep::kScores).scores;
}

// Returns the standard deviations of dot products before and after scaling, one curve each over dₖ.
std::array<Curve, 2> show_growth(Report& report) {
  report.step("A dot product grows with the number of its terms");
  report.paragraph(
      "q · k adds up dₖ products. If the entries of q and k are independent, with mean 0 and "
      "variance 1, so is each product, and variances of independent things add: var(q · k) = dₖ, "
      "and the standard deviation is √dₖ.");
  report.say();
  report.paragraph("Measured on {} random pairs for each dₖ:", kDraws);
  report.say();
  report.say("  {:>5} {:>6} {:>8} {:>11} {:>13} {:>8}", "dₖ", "√dₖ", "mean", "deviation",
             "after scaling", "1/√dₖ");
  TorchGenerator generator(42);
  auto rows = nlohmann::json::array();
  std::array curves{Curve{.name = "q · k", .has_markers = true},
                    Curve{.name = "q · k / √dₖ", .has_markers = true}};
  for (const std::int64_t head_dim : {4, 16, 64, 512}) {
    const auto [mean, deviation] = spread(dot_products(generator, kDraws, head_dim));
    const double scaled = deviation / root(head_dim);
    report.say("  {:>5} {:>6.1f} {:>8.2f} {:>11.2f} {:>13.2f} {:>8.4f}", head_dim, root(head_dim),
               mean, deviation, scaled, 1 / root(head_dim));
    for (Curve& curve : curves) curve.x.push_back(static_cast<double>(head_dim));
    curves[0].y.push_back(deviation);
    curves[1].y.push_back(scaled);
    rows.push_back({{"d_k", head_dim},
                    {"root", root(head_dim)},
                    {"mean", mean},
                    {"deviation", deviation},
                    {"scaled_deviation", scaled},
                    {"scale", 1 / root(head_dim)}});
  }
  report.record("growth", rows);
  report.say();
  report.paragraph(
      "What to notice: without the division scores of 20 and more are ordinary at dₖ = 512; after "
      "it they are of size 1 for every dₖ.");
  return curves;
}

void show_saturation(Report& report) {
  report.step("Large scores saturate the softmax");
  report.paragraph(
      "softmax(s)ᵢ = exp(sᵢ) / Σⱼ exp(sⱼ) sees differences, and exp makes them factors: 10 against "
      "0 is a factor of {:.0f}.",
      std::exp(10.0));
  report.say();
  const Tensor<float> scores({3, 3}, {10, 0, 0, 10, 1, 1, 1, 0.5F, 0.5F});
  const std::vector<std::string> labels{"[10, 0, 0]   →", "[10, 1, 1]   →", "[1, .5, .5]  →"};
  report.show("saturation", "Scores, and the weights they give:", reference::softmax(scores), 6,
              labels);
  report.say();
  report.paragraph(
      "What to notice: the first two rows are all but a choice of one key. Only the third is a "
      "mixture.");
}

void show_gradient(Report& report) {
  report.step("And a saturated softmax does not learn");
  report.paragraph(
      "If the loss asks for more of weight 0, its gradient with respect to the weights is g = [1, "
      "0, 0]. With respect to the scores it is");
  report.say();
  report.say("    ∂L/∂sᵢ = wᵢ · (gᵢ − Σⱼ wⱼ gⱼ)");
  report.say();
  report.paragraph("which is small where every weight is near 0 or 1:");
  report.say();
  const Tensor<float> scores({2, 3}, {10, 1, 1, 1, 0.5F, 0.5F});
  const Tensor<float> grad_weights({2, 3}, {1, 0, 0, 1, 0, 0});
  const auto gradient = reference::softmax_backward(grad_weights, reference::softmax(scores));
  report.show("gradient", "Gradient with respect to the scores:", gradient, 6,
              {"[10, 1, 1]   →", "[1, .5, .5]  →"});
  const float ratio = gradient(1, 0) / gradient(0, 0);
  report.record("gradient_ratio", ratio);
  report.say();
  report.paragraph(
      "What to notice: the large scores receive {:.0f} times less. They are stuck where they are, "
      "right or wrong.",
      ratio);
}

Bars bars_of(const char* name, const Tensor<float>& weights) {
  return {name, {weights.elements().begin(), weights.elements().end()}};
}

// Returns the weights of eight keys, without and with scaling.
std::array<Bars, 2> show_in_attention(Report& report) {
  report.step("The same in attention: one query, eight keys, dₖ = 512");
  TorchGenerator generator(42);
  const auto query = generator.randn({1, 1, 1, 512});
  const auto key = generator.randn({1, 1, 8, 512});
  const auto unscaled = reference::attention(query, key, key, {.scale = 1.0F}, Keep::kWeights);
  const auto scaled = reference::attention(query, key, key, {}, Keep::kWeights);
  report.show("unscaled_weights", "softmax(q · kᵀ):", matrix_of(unscaled.weights));
  report.show("scaled_weights", "softmax(q · kᵀ / √dₖ):", matrix_of(scaled.weights));
  report.say();
  report.paragraph("heed divides by √dₖ unless it is given another scale.");
  return {bars_of("softmax(q · k)", unscaled.weights),
          bars_of("softmax(q · k / √dₖ)", scaled.weights)};
}

Figure draw_growth(const std::array<Curve, 2>& curves, Theme theme) {
  return curves_figure(curves, {.title = "standard deviation of the scores",
                                .x_title = "head dimension dₖ",
                                .y_title = "standard deviation",
                                .has_log_x = true,
                                .has_log_y = true,
                                .theme = theme});
}

Figure draw_weights(const std::array<Bars, 2>& weights, Theme theme) {
  std::vector<std::string> keys;
  for (std::size_t key = 0; key < weights[0].heights.size(); ++key) {
    keys.push_back(std::to_string(key));
  }
  return bars_figure(keys, weights,
                     {.title = "weights of eight keys, dₖ = 512",
                      .x_title = "key",
                      .y_title = "weight",
                      .y_low = 0,
                      .y_high = 1,
                      .theme = theme});
}

void teach(Report& report) {
  report.paragraph("attention(Q, K, V) = softmax(Q Kᵀ / √dₖ) V. Why the root?");
  const auto growth = show_growth(report);
  show_saturation(report);
  show_gradient(report);
  const auto weights = show_in_attention(report);
  report.draw([growth, weights](Theme theme) {
    return join({.title = "Why scores are divided by √dₖ"},
                {draw_growth(growth, theme), draw_weights(weights, theme)}, theme);
  });
}

}  // namespace scaling_lesson

extern const Lesson kScalingLesson = {"scaling", "why √dₖ: variance, saturation, gradients",
                                      scaling_lesson::teach};

}  // namespace heed::learn
