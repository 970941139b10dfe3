#include <algorithm>
#include <cmath>
#include <limits>

#include "heed/attention/reference.h"
#include "heed/core/random.h"
#include "heed/nn/functional.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"

namespace heed::learn {

namespace masked_rows_lesson {

using reference::Keep;

const std::vector<std::string> kQueries{"query 0", "query 1", "query 2"};

// Three queries and three keys; query 1 sees no key.
struct Example {
  Tensor<float> query;
  Tensor<float> key;
  Tensor<float> value;
  Mask mask;

  reference::Result<float> attend() const {
    return reference::attention(query, key, value, {.mask = mask}, Keep::kMasked | Keep::kWeights);
  }
};

Example make_example() {
  TorchGenerator generator(0);
  auto query = generator.randn({1, 1, 3, 4});
  auto key = generator.randn({1, 1, 3, 4});
  auto value = generator.randn({1, 1, 3, 4});
  Tensor<bool> allowed({3, 3}, {true, false, false, false, false, false, true, true, true});
  return {std::move(query), std::move(key), std::move(value), Mask::allow(std::move(allowed))};
}

// Returns weights · value for one matrix of each, by the rule of matrix products, in which NaN
// propagates.
Tensor<float> weighted_sums(FloatView weights, FloatView value) {
  return linear(weights, LinearParameters<float>{to_tensor(value.permute({1, 0})), {}});
}

// Applies torch.nan_to_num to the weights.
Tensor<float> nan_to_zero(Tensor<float> weights) {
  for (float& weight : weights.elements()) weight = std::isnan(weight) ? 0 : weight;
  return weights;
}

void show_naive(Report& report, const Example& example) {
  report.step("By the formula: 0 divided by 0");
  const auto masked = example.attend().masked;
  report.show("masked_scores", "Scores after the mask:", matrix_of(masked), 2, kQueries);
  const auto weights = reference::naive_softmax(matrix_of(masked));
  report.say();
  report.paragraph("softmax divides by the sum of exp(s). Where every s is −∞ that sum is 0:");
  report.say();
  report.show("naive_weights", "Weights:", weights, 4, kQueries);
  report.show("naive_out",
              "Output, weights · values:", weighted_sums(weights, matrix_of(example.value)), 4,
              kQueries);
  report.say();
  report.paragraph(
      "What to notice: one such row is enough. In the next layer every query may look at this NaN, "
      "and then every output is NaN.");
}

void show_rule(Report& report, const Example& example) {
  report.step("By heed's rule: who sees nothing takes nothing");
  const auto result = example.attend();
  report.show("weights", "Weights:", matrix_of(result.weights), 4, kQueries);
  report.show("out", "Output:", matrix_of(result.out), 4, kQueries);
  report.show("lse", "log Σ exp(s), the size of what was seen:",
              result.lse.view().select(0, 0).select(0, 0));
  report.say();
  report.paragraph(
      "What to notice: weights 0, output 0, and log 0 = −∞ says so. The other rows are as before.");
}

void show_gradients(Report& report, const Example& example) {
  report.step("Why not replace NaN by 0 afterwards, as is often done");
  const auto naive = reference::naive_softmax(matrix_of(example.attend().masked));
  report.show("repaired_weights", "nan_to_num gives the same weights:", nan_to_zero(naive), 4,
              kQueries);
  report.say();
  report.paragraph(
      "But training goes back through the softmax. Let the loss be the sum of all outputs. What "
      "was replaced passes back 0, and the softmax multiplies that by its own weights, NaN · 0 = "
      "NaN:");
  report.say();
  Tensor<float> grad_out(example.value.shape());
  std::fill(grad_out.elements().begin(), grad_out.elements().end(), 1.0F);
  auto grad_weights = linear(matrix_of(grad_out), {to_tensor(matrix_of(example.value)), {}});
  for_each_element(grad_weights.view().select(0, 1), [](float& element) { element = 0; });
  report.show("repaired_gradient",
              "Gradient of the scores:", reference::softmax_backward(grad_weights, naive), 4,
              kQueries);
  report.say();
  report.paragraph(
      "Where the mask was added to the scores, this NaN goes on to query 1 and from there to every "
      "key; only masked_fill, whose own gradient is 0 there, stops it.");
  report.say();
  const auto gradients = reference::attention_backward(grad_out, example.query, example.key,
                                                       example.value, {.mask = example.mask});
  report.show("grad_query", "heed's gradient of the queries:", gradients.query, 4, kQueries);
}

void show_hidden_mistake(Report& report, const Example& example) {
  report.step("Besides, a repair hides real mistakes");
  Example broken = example;
  broken.query(0, 0, 2, 0) = std::numeric_limits<float>::quiet_NaN();
  const auto result = broken.attend();
  report.paragraph("With a NaN in query 2, which does see keys:");
  report.say();
  report.show("hidden_mistake", "Weights after nan_to_num:",
              nan_to_zero(reference::naive_softmax(matrix_of(result.masked))), 4, kQueries);
  report.show("shown_mistake", "heed's weights:", matrix_of(result.weights), 4, kQueries);
  report.say();
  report.paragraph("What to notice: 0 for who sees nothing, NaN for what is broken.");
}

void show_large_negative(Report& report, const Example& example) {
  report.step("And why not -1e9 instead of −∞");
  Tensor<float> added({3, 3}, {0, -1e9F, -1e9F, -1e9F, -1e9F, -1e9F, 0, 0, 0});
  const auto result =
      reference::attention(example.query, example.key, example.value,
                           {.mask = Mask::additive(std::move(added))}, Keep::kWeights);
  report.show("finite_weights", "Weights:", matrix_of(result.weights), 4, kQueries);
  report.say();
  report.paragraph(
      "What to notice: no NaN, but query 1 now looks at all the keys it must not see: a softmax "
      "compares, and the scores of that row are equally bad.");
}

// Draws the weights by the formula and by heed's rule. The formula's NaN is shown although it is
// masked.
void draw(Report& report, const Example& example) {
  const auto result = example.attend();
  const Tensor<bool> seen =
      materialize_allow(example.mask, {.q_len = 3, .kv_len = 3}).reshaped({3, 3});
  DrawnMatrix formula{.title = "by the formula: 0 / 0",
                      .values = reference::naive_softmax(matrix_of(result.masked)),
                      .visible = seen};
  DrawnMatrix rule{.title = "by heed's rule: nothing",
                   .values = matrix_from(result.weights.view()),
                   .visible = seen};
  for (std::int64_t key = 0; key < 3; ++key) formula.visible(1, key) = true;
  report.draw(
      drawing_of({.title = "A query that sees nothing",
                  .note = "Hatched: hidden by the mask, of weight 0. Query 1 may see no key.",
                  .matrices = {std::move(formula), std::move(rule)}}));
}

void teach(Report& report) {
  report.paragraph(
      "A query may be left with no key at all: a sentence that is only padding, a window beyond "
      "the end. What is softmax of nothing?");
  const Example example = make_example();
  show_naive(report, example);
  show_rule(report, example);
  show_gradients(report, example);
  show_hidden_mistake(report, example);
  show_large_negative(report, example);
  draw(report, example);
}

}  // namespace masked_rows_lesson

extern const Lesson kMaskedRowsLesson = {"masked-rows", "a query that sees nothing: no NaN",
                                         masked_rows_lesson::teach};

}  // namespace heed::learn
