#include <cmath>

#include "heed/attention/reference.h"
#include "heed/core/random.h"
#include "heed/nn/functional.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"

namespace heed::learn {

namespace variations_lesson {

using reference::Keep;

// The inputs of the lesson running-example: an embedding of `width` numbers for each of four words,
// then four projections without biases.
struct Example {
  Tensor<float> x;  // [1, 4, width]
  AttentionParameters<float> parameters;

  MultiHeadOutput<float> attend(const AttentionOptions& options) const {
    return multi_head_attention(x, x, parameters, 1, options);
  }
};

Example draw_example(std::int64_t width) {
  TorchGenerator generator(0);
  auto x = embedding_weight(generator, 4, width).reshaped({1, 4, width});
  return {std::move(x), attention_init(generator, width, width, false)};
}

// Returns scores and weights of x [T, C] with itself under the causal mask: query = key = value =
// x.
reference::Result<float> attend_to_itself(const Tensor<float>& x) {
  const auto rows = x.view().to_rank(4);
  return reference::attention(rows, rows, rows, {.mask = causal()}, Keep::kScores | Keep::kWeights);
}

// Returns a drawing of weights under the causal mask.
DrawnMatrix causal_weights(const char* title, const Tensor<float>& weights) {
  DrawnMatrix drawn{.title = title, .values = matrix_from(weights.view())};
  const std::int64_t length = drawn.values.extent(0);
  drawn.visible =
      materialize_allow(causal(), {.q_len = length, .kv_len = length}).reshaped({length, length});
  return drawn;
}

// Draws the picture: equal scores, then the running example with its mask and without.
void draw(Report& report) {
  const std::vector<std::string> words{"I", "love", "AI", "!"};
  auto equal = causal_weights("equal scores", attend_to_itself(Tensor<float>({4, 2})).weights);
  const Example example = draw_example(4);
  auto masked = causal_weights("\"I love AI !\"", example.attend({.mask = causal()}).weights);
  const auto unmasked = example.attend({}).weights;
  DrawnMatrix full{.title = "the same without the mask", .values = matrix_from(unmasked.view())};
  for (DrawnMatrix* matrix : {&masked, &full}) matrix->queries = matrix->keys = words;
  report.draw(drawing_of({.title = "One thing changed at a time",
                          .note = "Hatched: hidden by the causal mask. Every row sums to 1.",
                          .matrices = {std::move(equal), std::move(masked), std::move(full)}}));
}

void vary_scores(Report& report) {
  report.step("Equal scores");
  const auto equal = attend_to_itself(Tensor<float>({3, 2}));
  report.show("equal_scores",
              "X = 0, so every score is 0. Causal weights:", matrix_of(equal.weights));
  report.say();
  report.paragraph(
      "Equal scores give equal weights: 1, then halves, then thirds. Attention with nothing to "
      "choose by is a mean.");

  report.step("Symmetric scores");
  const auto result = attend_to_itself(Tensor<float>({3, 2}, {1, 0, 0, 1, 1, 1}));
  const auto scores = matrix_of(result.scores);
  const double asymmetry = max_difference(scores, scores.permute({1, 0}));
  report.show("symmetric_scores", "X Xᵀ / √2 for X = [1 0; 0 1; 1 1]:", scores);
  report.record("asymmetry", asymmetry);
  report.say();
  report.paragraph(
      "xᵢ · xⱼ = xⱼ · xᵢ: without projections \"i looks at j\" is \"j looks at i\" (largest "
      "difference from the transpose: {}). Wq ≠ Wk breaks the symmetry.",
      asymmetry);
}

void remove_scale(Report& report) {
  report.step("Without the scale");
  report.paragraph(
      "The running example (PyTorch's seed 0, causal), and the same drawn wider. The weights of "
      "its last word:");
  report.say();
  auto rows = nlohmann::json::array();
  for (const std::int64_t width : {4, 64}) {
    const Example example = draw_example(width);
    const auto scaled = example.attend({.mask = causal()}).weights;
    const auto unscaled = example.attend({.mask = causal(), .scale = 1.0F}).weights;
    const auto with_scale = to_tensor(matrix_of(scaled).select(0, 3));
    const auto without_scale = to_tensor(matrix_of(unscaled).select(0, 3));
    report.say("  dₕ = {:>2}   q · k / √dₕ   {}", width, list(with_scale));
    report.say("             q · k          {}", list(without_scale));
    rows.push_back({{"d_h", width},
                    {"scaled", with_scale.elements()},
                    {"unscaled", without_scale.elements()}});
  }
  report.record("no_scale", rows);
  report.say();
  report.paragraph("With 4 numbers the change is small. With 64 one key takes nearly everything.");
}

void remove_mask(Report& report) {
  report.step("Without the mask");
  const auto full = draw_example(4).attend({});
  report.show("no_mask",
              "The running example, every word seeing every word:", matrix_of(full.weights), 4,
              {"I", "love", "AI", "!"});
  report.show_row_sums("no_mask_row_sums", matrix_of(full.weights));
  report.say();
  report.paragraph(
      "The upper triangle is filled, and the sums are still 1: that is the softmax's doing, not "
      "the mask's.");
}

void look_at_first_row(Report& report) {
  report.step("The first row, whatever the input");
  auto rows = nlohmann::json::array();
  for (const std::uint64_t seed : {1, 2, 3}) {
    TorchGenerator generator(seed);
    const auto result = attend_to_itself(generator.randn({4, 8}));
    const auto row = to_tensor(matrix_of(result.weights).select(0, 0));
    report.say("  random input of seed {}: {}", seed, list(row));
    rows.push_back(row.elements());
  }
  report.record("first_rows", rows);
  report.say();
  report.paragraph(
      "The first word sees one key, and softmax of one number s is exp(s)/exp(s) = 1.");
}

void measure_variance(Report& report) {
  report.step("The variance of a dot product");
  report.paragraph(
      "If the entries of q and k have mean 0 and variance σ², each product has variance σ⁴, and "
      "dₕ of them dₕ σ⁴. Divided by √dₕ: variance σ⁴, deviation σ², for every dₕ. Measured on "
      "4000 pairs:");
  report.say();
  report.say("  {:>4} {:>5} {:>10} {:>10} {:>22}", "dₕ", "σ", "dₕ σ⁴", "variance",
             "deviation after scale");
  TorchGenerator generator(42);
  auto rows = nlohmann::json::array();
  for (const auto& [head_dim, sigma] : {std::pair{16, 1.0}, {16, 2.0}, {64, 0.5}, {64, 2.0}}) {
    Tensor<float> query({4000, 1, 1, head_dim});
    Tensor<float> key({4000, 1, 1, head_dim});
    generator.normal(query, 0, sigma);
    generator.normal(key, 0, sigma);
    const auto scores = reference::attention(query, key, key, {}, Keep::kScores).scores;
    const double deviation = spread(scores).deviation;
    const double variance = deviation * deviation * head_dim;
    const double expected = head_dim * std::pow(sigma, 4);
    report.say("  {:>4} {:>5} {:>10} {:>10.1f} {:>22.3f}", head_dim, sigma, expected, variance,
               deviation);
    rows.push_back({{"d_h", head_dim},
                    {"sigma", sigma},
                    {"expected", expected},
                    {"variance", variance},
                    {"scaled_deviation", deviation}});
  }
  report.record("variance", rows);
}

void count_parameters(Report& report) {
  report.step("The number of parameters: 4 · C · dₕ");
  report.paragraph("Three projections C → dₕ and one back, without biases:");
  report.say();
  TorchGenerator generator(0);
  auto rows = nlohmann::json::array();
  for (const auto& [width, head_dim] : {std::pair{4, 4}, {8, 2}, {64, 16}}) {
    const std::int64_t count = attention_init(generator, width, head_dim, false).num_parameters();
    report.say("  C = {:>2}, dₕ = {:>2}:  {:>4}", width, head_dim, count);
    rows.push_back({{"width", width}, {"head_dim", head_dim}, {"count", count}});
  }
  report.record("parameters", rows);
}

void sum_rows(Report& report) {
  report.step("The sums of the rows");
  TorchGenerator generator(0);
  const auto query = generator.randn({1, 1, 5, 16});
  const auto key = generator.randn({1, 1, 5, 16});
  const auto result = reference::attention(query, key, key, {}, Keep::kWeights);
  report.paragraph("Five random queries and keys of 16 numbers.");
  report.show_row_sums("row_sums", matrix_of(result.weights));
}

void add_biases(Report& report) {
  report.step("A bias on the keys, a bias on the queries");
  report.say("  q · (k + b) = q · k + q · b   the same for every key: softmax does not see it");
  report.say("  (q + b) · k = q · k + b · k   another for every key: softmax sees it");
  report.say();
  const Example plain = draw_example(4);
  const auto weights = plain.attend({.mask = causal()}).weights;
  const Tensor<float> bias({4}, {1, -2, 0.5F, 3});
  Example key_bias = plain;
  key_bias.parameters.key.bias = bias;
  Example query_bias = plain;
  query_bias.parameters.query.bias = bias;
  const double by_key = max_difference(key_bias.attend({.mask = causal()}).weights, weights);
  const double by_query = max_difference(query_bias.attend({.mask = causal()}).weights, weights);
  report.paragraph("The running example with b = {}, largest change of a weight:", list(bias, 1));
  report.say();
  report.say("  bias on the keys      {:.1e}   (rounding)", by_key);
  report.say("  bias on the queries   {:.1e}", by_query);
  report.record("key_bias_change", by_key);
  report.record("query_bias_change", by_query);
  report.say();
  report.paragraph(
      "It is often said that neither has an effect. For the queries that is wrong: b · k prefers "
      "some keys whatever the query, and a model can use that.");
}

void teach(Report& report) {
  report.paragraph(
      "Change one thing, say what you expect, look. weights = softmax(Q Kᵀ / √dₕ + M).");
  vary_scores(report);
  remove_scale(report);
  remove_mask(report);
  look_at_first_row(report);
  measure_variance(report);
  count_parameters(report);
  sum_rows(report);
  add_biases(report);
  draw(report);
}

}  // namespace variations_lesson

extern const Lesson kVariationsLesson = {"variations", "change one thing, expect, look",
                                         variations_lesson::teach};

}  // namespace heed::learn
