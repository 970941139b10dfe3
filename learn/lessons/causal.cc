#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "heed/attention/reference.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"
#include "lessons/scratch.h"

namespace heed::learn {

namespace causal_lesson {

using reference::Keep;

constexpr std::int64_t kSeqLen = 4;
constexpr double kVeryNegative = -1e9;
constexpr int kDrawnDecimals = 3;

// Returns a mask as a matrix [seq_len, seq_len] of `added` for hidden scores and 0 for visible
// ones.
Tensor<double> additive(const Mask& mask, double added) {
  const Tensor<bool> hidden = materialize_block(mask, {.q_len = kSeqLen, .kv_len = kSeqLen});
  Tensor<double> result({kSeqLen, kSeqLen});
  std::transform(hidden.elements().begin(), hidden.elements().end(), result.elements().begin(),
                 [=](bool hide) { return hide ? added : 0; });
  return result;
}

reference::Result<double> attend(const ScratchExample& example, const AttentionOptions64& options) {
  return reference::attention(example.query, example.key, example.value, options,
                              Keep::kEverything);
}

// Prints scores with 2 decimals and an exponent, which shows small and huge numbers.
void say_scientific(Report& report, DoubleView scores) {
  for (std::int64_t row = 0; row < kSeqLen; ++row) {
    std::string line;
    for_each_element(scores.select(0, row), [&line](double score) {
      line += fmt::format("{}{: .8e}", line.empty() ? "" : " ", std::nearbyint(score * 100) / 100);
    });
    report.say("  [{}]", line);
  }
}

void add_a_very_negative_number(Report& report, const ScratchExample& example) {
  const Tensor<double> added = additive(causal(), kVeryNegative);
  const auto result = attend(example, {.bias = added});

  report.step("Scores, as in from-scratch, for 4 tokens");
  report.show("scores", "Q Kᵀ / √2:", result.scores, 2);
  report.paragraph(
      "Everyone looks at everyone. But whoever is to guess the next word must not see it: row i "
      "may look at the columns 0 to i only.");

  report.step("Add a very negative number where a row must not look");
  report.show("added", "M:", added, 0);
  report.record("masked_scores", result.modified);
  report.paragraph("Scores with {:g} added above the diagonal:", kVeryNegative);
  say_scientific(report, result.modified.view().select(0, 0).select(0, 0));
  report.paragraph("In the last column of rows 0 and 1 the score itself still shows.");

  report.step("Softmax does the rest");
  report.show("weights", "Weights:", result.weights, 3);
  report.show("out", "weights V:", result.out);
  report.paragraph(
      "exp(-10⁹) is 0 in every floating-point format. Row 0 is left with itself; row 3 sees "
      "everything, so no weight of it changed.");
}

// Returns a drawing of weights that hatches the keys hidden by the mask.
DrawnMatrix drawn(const char* title, const Tensor<double>& weights, const Mask& mask) {
  return {.title = title,
          .values = matrix_from(weights.view(), kDrawnDecimals),
          .visible = materialize_allow(mask, {.q_len = kSeqLen, .kv_len = kSeqLen})
                         .reshaped({kSeqLen, kSeqLen})};
}

// Returns the drawing of the weights.
DrawnMatrix add_minus_infinity(Report& report, const ScratchExample& example) {
  const Tensor<double> added = additive(causal(), kVeryNegative);
  const auto large = attend(example, {.bias = added});
  const auto masked = attend(example, {.mask = causal()});
  double difference = 0;
  for (std::size_t i = 0; i < masked.weights.elements().size(); ++i) {
    difference =
        std::max(difference, std::abs(masked.weights.elements()[i] - large.weights.elements()[i]));
  }
  report.step("Minus infinity instead, which is what heed's masks stand for");
  report.show("infinity_scores", "Scores under causal():", masked.masked, 2);
  report.show("infinity_weights", "Weights:", masked.weights, 3);
  report.record("difference", difference);
  report.paragraph("The largest difference from the weights above is {}.", difference);
  return drawn("causal, by −1e9 or by −∞", masked.weights, causal());
}

// Returns the two drawings of a mask with a row that sees nothing.
std::array<DrawnMatrix, 2> rows_that_see_nothing(Report& report, const ScratchExample& example) {
  const Mask strictly_before = causal(-1);
  const Tensor<double> added = additive(strictly_before, kVeryNegative);
  const auto numbers = attend(example, {.bias = added});
  const auto infinities = attend(example, {.mask = strictly_before});
  const auto unmasked = attend(example, {});

  report.step("Where they differ: a row that sees nothing");
  report.paragraph(
      "Let a token look at those before it, but not at itself. The first one then has nothing to "
      "look at:");
  for (const auto& line :
       to_lines(strictly_before, {.q_len = kSeqLen, .kv_len = kSeqLen}, kHashGlyphs)) {
    report.say("  {}", line);
  }
  report.say();
  report.show("blind_number_weights", "Weights with -1e9 added:", numbers.weights, 3);
  report.show("blind_infinity_weights", "Weights with -inf:", infinities.weights, 3);
  report.show("blind_number_out", "Output with -1e9 added:", numbers.out);
  report.show("blind_infinity_out", "Output with -inf:", infinities.out);
  report.record("unmasked_weights", unmasked.weights);
  report.paragraph(
      "Rows 1 to 3 agree. In row 0, -1e9 was added to every score, and softmax only sees "
      "differences, so the mask cancels and the row looks at all the others, the future included. "
      "Nothing warns of it. With -inf the row has no weights at all, and heed defines its output "
      "as 0. (The bare formula would give 0 / 0 = NaN: `heed lesson masked-rows`.)");
  std::array result{drawn("what is before, by −1e9", numbers.weights, strictly_before),
                    drawn("what is before, by −∞", infinities.weights, strictly_before)};
  // −1e9 was added to the whole of row 0 and thus hides nothing from it.
  for (std::int64_t key = 0; key < kSeqLen; ++key) result[0].visible(0, key) = true;
  return result;
}

void teach(Report& report) {
  report.say("    attention(Q, K, V) = softmax(Q Kᵀ / √dₖ + M) V");
  report.say();
  report.paragraph("M is 0 where a query may look, and something very negative where it may not.");
  const ScratchExample example(kSeqLen);
  add_a_very_negative_number(report, example);
  auto alike = add_minus_infinity(report, example);
  auto [number, infinity] = rows_that_see_nothing(report, example);
  report.draw(drawing_of(
      {.title = "No look ahead: a very negative number, or minus infinity",
       .note =
           "Hatched: hidden, of weight 0. Where row 0 sees nothing, −1e9 hides nothing from it, "
           "and it looks into the future.",
       .matrices = {std::move(alike), std::move(number), std::move(infinity)},
       .decimals = kDrawnDecimals}));
}

}  // namespace causal_lesson

extern const Lesson kCausalLesson = {"causal", "no look ahead: -1e9 or -inf (NumPy, seed 42)",
                                     causal_lesson::teach};

}  // namespace heed::learn
