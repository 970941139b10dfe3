#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "heed/attention/reference.h"
#include "heed/viz/chart.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"

namespace heed::learn {

namespace softmax_lesson {

constexpr int kNumpyDecimals = 8;  // as many as NumPy prints

template <class Function>
Tensor<double> map(const Tensor<double>& values, Function function) {
  Tensor<double> result(values.shape());
  std::transform(values.elements().begin(), values.elements().end(), result.elements().begin(),
                 function);
  return result;
}

Tensor<double> exponentials(const Tensor<double>& scores) {
  return map(scores, [](double score) { return std::exp(score); });
}

double sum(const Tensor<double>& values) {
  double total = 0;
  for (const double value : values.elements()) total += value;
  return total;
}

Tensor<double> below_largest(const Tensor<double>& scores) {
  const double largest = *std::max_element(scores.elements().begin(), scores.elements().end());
  return map(scores, [=](double score) { return score - largest; });
}

void by_hand(Report& report) {
  report.step("By hand");
  const Tensor<double> scores({3}, {1, 2, 3});
  const Tensor<double> powers = exponentials(scores);
  const Tensor<double> weights = reference::softmax(scores);
  report.show("by_hand_scores", "Three scores z:", scores, 0);
  report.show("by_hand_exp", "exp(z):", powers);
  report.record("by_hand_sum", sum(powers));
  report.paragraph("They add up to {:.4f}. Each one's share of that sum is its weight:",
                   sum(powers));
  report.show("by_hand_weights", "softmax(z):", weights);
  report.paragraph(
      "From one score to the next it is always a step of 1, and each weight is {:.4f} times the "
      "one before: a difference of scores has become a ratio of weights. That is how the best "
      "match gets most of the attention.",
      weights(2) / weights(1));
}

void large_scores(Report& report) {
  report.step("The formula fails where the scores are large");
  const Tensor<double> scores({3}, {1000, 1001, 1002});
  report.show("large_scores", "z:", scores, 0);
  report.show("large_exp", "exp(z) leaves the range of a double:", exponentials(scores));
  report.show("large_naive",
              "Infinity divided by infinity is not a number:", reference::naive_softmax(scores));

  report.step("The cure: subtract the largest score first");
  report.paragraph(
      "exp(z - c) = exp(z) / exp(c) for any c, and the factor 1 / exp(c) cancels in the quotient. "
      "With c = max z no exponent is above 0, so nothing overflows.");
  report.say();
  const Tensor<double> shifted = below_largest(scores);
  report.show("large_shifted", "z - max z:", shifted, 0);
  report.show("large_shifted_exp", "exp(z - max z):", exponentials(shifted), kNumpyDecimals);
  const Tensor<double> weights = reference::softmax(scores);
  report.show("large_stable", "softmax(z):", weights, kNumpyDecimals);
  report.record("large_stable_sum", sum(weights));
  report.paragraph(
      "These are the weights of 1, 2, 3 again: only differences between scores count. Their sum is "
      "{}. A double has about 16 digits, and one rounding happened in the last of them: compare "
      "such sums with a tolerance.",
      sum(weights));
}

void both_ways(Report& report) {
  report.step("Where both work, they agree");
  const Tensor<double> scores({3}, {2, 1, 0.1});
  const Tensor<double> shifted = below_largest(scores);
  report.show("small_scores", "z:", scores, 1);
  report.show("small_shifted", "z - max z:", shifted, 1);
  report.show("small_shifted_exp", "exp(z - max z):", exponentials(shifted), kNumpyDecimals);
  report.show("small_naive", "By the formula as it stands:", reference::naive_softmax(scores),
              kNumpyDecimals);
  report.show("small_stable", "With the largest subtracted:", reference::softmax(scores),
              kNumpyDecimals);
}

void hidden_score(Report& report) {
  report.step("A score of minus infinity");
  const Tensor<double> scores({3}, {2, 1, -std::numeric_limits<double>::infinity()});
  report.show("hidden_scores", "z:", scores, 1);
  report.show("hidden_weights", "softmax(z):", reference::softmax(scores), 2);
  report.paragraph(
      "exp(-inf) is 0, exactly. The others share out the whole weight as if the third score were "
      "not there: this is all that a mask does.");
}

// Draws the weights of a few scores, one bar for each.
Figure draw_scores(const Tensor<double>& scores, Theme theme) {
  std::vector<std::string> names;
  std::string title = "z =";
  for (const double score : scores.elements()) {
    names.push_back(std::isinf(score) ? "−∞" : fmt::format("{}", score));
    title += (names.size() == 1 ? " " : ", ") + names.back();
  }
  const auto weights = reference::softmax(scores);
  const Bars bars{"", {weights.elements().begin(), weights.elements().end()}};
  return bars_figure(names, std::array{bars},
                     {.title = title,
                      .x_title = "score",
                      .y_title = "weight",
                      .y_low = 0,
                      .y_high = 1,
                      .theme = theme});
}

Figure draw_softmax(Theme theme) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  std::vector<Figure> figures;
  for (const auto& scores :
       {Tensor<double>({3}, {1, 2, 3}), Tensor<double>({3}, {1000, 1001, 1002}),
        Tensor<double>({3}, {2, 1, -kInfinity})}) {
    figures.push_back(draw_scores(scores, theme));
  }
  return join({.title = "softmax: scores become weights",
               .note = "Only differences between scores count. A score of −∞ has the weight 0.",
               .width = 180,
               .height = 220},
              std::move(figures), theme);
}

void teach(Report& report) {
  report.say("    softmax(z)_i = exp(z_i) / (exp(z_1) + ... + exp(z_n))");
  report.say();
  report.paragraph(
      "Any numbers go in. Out come positive ones that add up to 1, in the same order of size: "
      "something to mix with.");
  by_hand(report);
  large_scores(report);
  both_ways(report);
  hidden_score(report);
  report.draw(draw_softmax);
}

}  // namespace softmax_lesson

extern const Lesson kSoftmaxLesson = {"softmax", "scores become weights, without overflow",
                                      softmax_lesson::teach};

}  // namespace heed::learn
