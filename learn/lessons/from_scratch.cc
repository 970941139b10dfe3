#include "heed/attention/reference.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"
#include "lessons/scratch.h"

namespace heed::learn {

namespace from_scratch_lesson {

using reference::Keep;

constexpr std::int64_t kSeqLen = 3;

void show_projections(Report& report, const ScratchExample& example) {
  report.step("Project x three times");
  report.show("x", "x, a row for each token, drawn by NumPy with seed 42:", example.x);
  report.show("query_weight", "Wq, drawn next and halved, as Wk and Wv are:", example.query_weight);
  report.show("key_weight", "Wk:", example.key_weight);
  report.show("value_weight", "Wv:", example.value_weight);
  report.show("query", "Q = x Wq, what each token looks for:", example.query);
  report.show("key", "K = x Wk, how it can be found:", example.key);
  report.show("value", "V = x Wv, what it gives:", example.value);
  const Shape projected{kSeqLen, example.query.extent(-1)};
  report.record("x_shape", example.x.shape());
  report.record("query_shape", projected);
  report.paragraph("Shapes: x {}, W {}, and so Q, K and V {}.", to_string(example.x.shape()),
                   to_string(example.query_weight.shape()), to_string(projected));
}

void teach(Report& report) {
  report.say("    attention(Q, K, V) = softmax(Q Kᵀ / √dₖ) V");
  report.say();
  report.paragraph(
      "Three tokens of width 4, one head of width dₖ = 2: small enough to see it all.");

  const ScratchExample example(kSeqLen);
  show_projections(report, example);
  const auto result = reference::attention(example.query, example.key, example.value, {},
                                           Keep::kScores | Keep::kWeights);

  report.step("Compare every query with every key");
  report.show("scores", "Q Kᵀ / √2, row: who looks, column: who is looked at:", result.scores, 2);
  report.paragraph(
      "Row 1 scores highest at column 1. The table is not symmetric: how much a looks for b is not "
      "how much b looks for a.");

  report.step("Turn each row into shares");
  report.show("weights", "softmax of each row:", result.weights, 3);
  report.show_row_sums("row_sums", result.weights);
  report.paragraph(
      "The scores lie close together, so no token takes all. Small scores make for attention that "
      "looks everywhere.");

  report.step("Mix the values");
  report.show("out", "weights V, one row a token:", result.out);
  report.record("out_shape", Shape{kSeqLen, result.out.extent(-1)});
  report.paragraph(
      "Each row is a mean of the rows of V with the weights above. All of it was matrix products, "
      "three for the projections and two for attention, and one softmax between.");
  const auto of_tokens = [](const char* title, DoubleView values) {
    return DrawnMatrix{.title = title,
                       .values = matrix_from(values, 2),
                       .query_title = "token",
                       .key_title = "dimension",
                       .bar_title = "entry"};
  };
  report.draw(drawing_of({.title = "Attention in four steps",
                          .matrices = {of_tokens("Q = x Wq", example.query),
                                       of_tokens("K = x Wk", example.key),
                                       of_tokens("V = x Wv", example.value),
                                       {.title = "scores Q Kᵀ / √2",
                                        .values = matrix_from(result.scores.view(), 2),
                                        .bar_title = "score"},
                                       {.title = "weights, softmax of each row",
                                        .values = matrix_from(result.weights.view(), 2)},
                                       of_tokens("output, weights V", result.out)},
                          .is_signed = true,
                          .columns = 3}));
}

}  // namespace from_scratch_lesson

extern const Lesson kFromScratchLesson = {
    "from-scratch", "attention in four steps (NumPy, seed 42)", from_scratch_lesson::teach};

}  // namespace heed::learn
