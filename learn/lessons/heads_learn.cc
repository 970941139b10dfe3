#include <utility>

#include "heed/attention/diagnostics.h"
#include "heed/core/convert.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"
#include "lessons/tiny_copy.h"

namespace heed::learn {

namespace heads_learn_lesson {

constexpr std::int64_t kTokens = 8;
const std::vector<std::string> kSentence{"The", "cat", "sat", "on", "the", "mat", ".", "<pad>"};
const std::vector<std::string> kTitles{"Adjacent Words", "Nouns", "Structural", "Punctuation"};

// Returns four invented patterns, [1, 4, 8, 8].
Tensor<double> illustrative_heads() {
  Tensor<double> weights({1, 4, kTokens, kTokens});
  const auto at = [&weights](std::int64_t head, std::int64_t q, std::int64_t k) -> double& {
    return weights(0, head, q, k);
  };
  for (std::int64_t q = 0; q < kTokens; ++q) {
    at(0, q, q) = 0.4;
    if (q + 1 < kTokens) at(0, q, q + 1) = 0.3;
    if (q > 0) at(0, q, q - 1) = 0.3;
    at(1, q, 1) = at(1, q, 5) = 0.5;
    at(2, q, q) = 0.5;
    at(3, q, kTokens - 2) = 1;
  }
  at(2, 0, 4) = at(2, 4, 0) = 0.5;
  at(2, 1, 5) = at(2, 5, 1) = 0.25;
  for (const std::int64_t head : {0, 2}) {
    for (std::int64_t q = 0; q < kTokens; ++q) {
      double sum = 0;
      for (std::int64_t k = 0; k < kTokens; ++k) sum += at(head, q, k);
      for (std::int64_t k = 0; k < kTokens; ++k) at(head, q, k) /= sum;
    }
  }
  return weights;
}

// Records each diagnostic of the simulated heads as a list.
void record_scores(Report& report, const AttentionDiagnostics& found) {
  std::vector<double> entropy;
  std::vector<double> padding;
  std::vector<double> same;
  for (const HeadDiagnostics& head : found.heads) {
    entropy.push_back(head.entropy);
    padding.push_back(head.padding);
    same.push_back(head.same);
  }
  report.record("illustrative_entropy", entropy);
  report.record("illustrative_padding", padding);
  report.record("illustrative_same", same);
  report.record("illustrative_similarity", found.similarity);
}

void show_illustration(Report& report) {
  report.step("What heads are said to do: illustrative");
  report.paragraph(
      "Heads are given names: who did what, what comes before, what is similar; nearby and distant "
      "positions, or everything alike. Here are four, made up, over a sentence whose last token is "
      "padding:");
  report.say();
  const Tensor<double> weights = illustrative_heads();
  report.heatmaps(kTitles, converted<float>(weights.view().select(0, 0)), 2);
  report.say();
  report.record("illustrative", weights.view().select(0, 0));
  const auto found = weight_diagnostics(weights, {}, {{kTokens - 1}, {kTokens - 1}});
  report.paragraph("Measured, the last token being padding:");
  report.say();
  show_heads(report, "illustrative_scores", found);
  record_scores(report, found);
  report.say();
  report.paragraph(
      "What to notice: the one that was drawn as \"adjacent\" looks at padding, which nobody would "
      "see in the picture.");
}

// Adds the model's current heads to the picture.
void draw_heads(const char* when, const inspect::MeasuredLayer& layer, MatricesPicture& picture) {
  const std::int64_t length = layer.weights.extent(1);
  for (std::int64_t head = 0; head < layer.weights.extent(0); ++head) {
    picture.matrices.push_back(
        {.title = fmt::format("head {} {}", head, when),
         .values = matrix_from(layer.weights.view().select(0, head)),
         .visible = materialize_allow(causal(), {.q_len = length, .kv_len = length})
                        .reshaped({length, length})});
  }
}

void show_training(Report& report) {
  constexpr std::int64_t kSteps = 150;
  TinyCopy copy;
  report.step("Before training");
  report.paragraph(
      "A model like that of `heed train copy`, smaller: one layer of 4 heads, width 32. It is to "
      "repeat 5 symbols after a separator. As drawn from seed 0:");
  report.say();
  MatricesPicture picture{.title = "Four heads learn to copy",
                          .note =
                              "The first of 64 sequences: five symbols, a separator, the same "
                              "five. Hatched: the future.",
                          .columns = 4,
                          .decimals = -1};
  const inspect::MeasuredLayer before = copy.measure();
  draw_heads("before", before, picture);
  show_heads(report, "before", before.diagnostics);
  report.record("exact_before", copy.exact());

  report.step("After training");
  const double loss = copy.train(kSteps, 1e-2).back();
  const double exact = copy.exact();
  report.paragraph(
      "{} steps later (loss {:.3f}), {:.1f} % of 64 new sequences are repeated exactly:", kSteps,
      loss, 100 * exact);
  report.say();
  const inspect::MeasuredLayer after = copy.measure();
  draw_heads("after", after, picture);
  report.draw(drawing_of(std::move(picture)));
  show_heads(report, "after", after.diagnostics);
  report.record("exact_after", exact);
  report.record("loss", loss);
  report.say();
  report.paragraph(
      "What to notice: at first every head averages, and all do the same. To copy, something has "
      "to look 5 places back from the separator on, and the offset at which a head has most of "
      "its weight says which heads took that over. Nobody told them to, nor how to share the "
      "work: the similarity says how much they still have in common.");
}

void teach(Report& report) {
  report.paragraph(
      "Heads are drawn alike and become different only by training. What each one does can be "
      "measured: docs/diagnostics.md says how.");
  show_illustration(report);
  show_training(report);
}

}  // namespace heads_learn_lesson

extern const Lesson kHeadsLearnLesson = {
    "heads-learn", "what heads do, before and after training: measured", heads_learn_lesson::teach};

}  // namespace heed::learn
