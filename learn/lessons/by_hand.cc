#include <cmath>

#include "heed/attention/reference.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"

namespace heed::learn {

namespace by_hand_lesson {

using reference::Keep;

// Draws the matrices of the lesson: tokens of two dimensions, and their weights for each other.
void draw(Report& report, const Tensor<double>& x, const reference::Result<double>& result) {
  constexpr int kDecimals = 4;
  const auto square = [](const char* title, const char* what, const Tensor<double>& values) {
    return DrawnMatrix{
        .title = title,
        .values = matrix_from(values.view(), kDecimals),
        .bar_title = what,
        .visible = materialize_allow(causal(), {.q_len = 3, .kv_len = 3}).reshaped({3, 3})};
  };
  const auto tokens = [](const char* title, const Tensor<double>& values) {
    return DrawnMatrix{.title = title,
                       .values = matrix_from(values.view(), kDecimals),
                       .query_title = "token",
                       .key_title = "dimension",
                       .bar_title = "entry"};
  };
  report.draw(
      drawing_of({.title = "Causal attention by hand",
                  .note = "Hatched: hidden by the mask.",
                  .matrices = {tokens("X", x), square("scores X Xᵀ / √2", "score", result.scores),
                               square("weights, softmax of each row", "weight", result.weights),
                               tokens("output, weights X", result.out)},
                  .is_signed = true,
                  .columns = 4,
                  .decimals = kDecimals}));
}

void mask_and_weigh(Report& report, const reference::Result<double>& result) {
  report.step("Hide the future");
  report.show("masked", "Minus infinity above the diagonal:", result.masked);

  report.step("Softmax, row by row");
  Tensor<double> powers = result.masked;
  for (double& element : powers.elements()) element = std::exp(element);
  report.show("exponentials", "exp of each score:", powers, 3);
  report.show_row_sums("sums", powers);
  report.show("weights", "Each row divided by its sum:", result.weights);
  report.show_row_sums("row_sums", result.weights);
  report.paragraph(
      "Above the diagonal all is 0. In row 2 the scores of columns 0 and 1 are equal, and so are "
      "their weights.");
}

void teach(Report& report) {
  report.say("    attention(Q, K, V) = softmax(Q Kᵀ / √d + M) V");
  report.say();
  report.paragraph(
      "Small enough for paper: three tokens of width 2, and no projections, so that Q = K = V = X. "
      "Compute each step before you read it.");
  const Tensor<double> x({3, 2}, {1, 0, 0, 1, 1, 1});
  const auto rows = x.view().to_rank(4);
  const auto unscaled = reference::attention(rows, rows, rows, {.scale = 1.0}, Keep::kScores);
  const auto result = reference::attention(rows, rows, rows, {.mask = causal()}, Keep::kEverything);

  report.step("Scores");
  report.show("x", "X:", x, 0);
  report.show("scores", "X Xᵀ, the dot product of every two rows:", unscaled.scores, 0);
  report.paragraph("Rows 0 and 1 stand at a right angle: 0. Row 2 has something of both.");

  report.step("Scale");
  report.record("root", std::sqrt(static_cast<double>(x.extent(1))));
  report.paragraph("√d = √{} = {:.4f}", x.extent(1), std::sqrt(static_cast<double>(x.extent(1))));
  report.show("scaled", "X Xᵀ / √d:", result.scores);

  mask_and_weigh(report, result);

  report.step("Mix the values");
  report.show("out", "weights X:", result.out);
  report.paragraph(
      "Row 0 saw itself only and stays as it was. Row 1 is between rows 0 and 1, nearer to itself. "
      "Row 2 has equal weight on rows 0 and 1, and so equal components.");
  draw(report, x, result);
}

}  // namespace by_hand_lesson

extern const Lesson kByHandLesson = {"by-hand", "causal attention on 3 x 2, to check on paper",
                                     by_hand_lesson::teach};

}  // namespace heed::learn
