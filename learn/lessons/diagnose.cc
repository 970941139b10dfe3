#include <array>
#include <cmath>

#include "heed/attention.h"
#include "heed/attention/diagnostics.h"
#include "heed/attention/reference.h"
#include "heed/core/random.h"
#include "heed/nn/functional.h"
#include "lessons/drawing.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"
#include "lessons/tiny_copy.h"

namespace heed::learn {

namespace diagnose_lesson {

double mean_entropy(const AttentionDiagnostics& diagnostics) {
  double sum = 0;
  for (const HeadDiagnostics& head : diagnostics.heads) sum += head.entropy;
  return sum / static_cast<double>(diagnostics.heads.size());
}

void show_uniform(Report& report) {
  report.step("Uniform attention: a red flag");
  report.paragraph(
      "Every position gets about 1/n: entropy near ln n, here 1. Usual causes: the learning rate "
      "is too low, embeddings do not tell what has to be told apart, or nothing is there to be "
      "looked for. The model of `heed lesson heads-learn`, 100 steps each:");
  report.say();
  struct Run {
    std::string_view name;
    std::string_view cause;
    double lr;
    std::string positions;
  };
  report.say("  {:<34} {:>8} {:>13} {:>8}", "", "loss", "exact match", "entropy");
  auto rows = nlohmann::json::array();
  for (const Run& run : {Run{"sound", "learning rate 0.01", 1e-2, "sinusoidal"},
                         Run{"low_rate", "learning rate 0.00001", 1e-5, "sinusoidal"},
                         Run{"no_positions", "0.01, but no positions", 1e-2, "none"}}) {
    TinyCopy copy(run.positions);
    const double loss = copy.train(100, run.lr).back();
    const double exact = copy.exact();
    const double entropy = mean_entropy(copy.measure().diagnostics);
    report.say("  {:<34} {:>8.3f} {:>11.1f} % {:>8.3f}", run.cause, loss, 100 * exact, entropy);
    rows.push_back(
        {{"run", run.name}, {"loss", loss}, {"exact_match", exact}, {"entropy", entropy}});
  }
  report.record("runs", rows);
  report.say();
  report.paragraph(
      "What to notice: where the rate is too low, heads stay as flat as they were drawn. Without "
      "positions they do become sharp, and still cannot find the place: low entropy alone proves "
      "nothing, high entropy is a reason to look.");
}

void show_collapse(Report& report) {
  report.step("Head collapse: the cosine similarity of heads");
  report.paragraph(
      "Eight heads with random queries and keys, and eight that are almost copies of one:");
  TorchGenerator generator(0);
  const auto query = generator.randn({1, 8, 32, 16});
  const auto key = generator.randn({1, 8, 32, 16});
  const auto noise = generator.randn({1, 8, 32, 16});
  Tensor<float> alike(query.shape());
  for (std::int64_t i = 0; i < alike.num_elements(); ++i) {
    alike.data()[i] = query.data()[i % (32 * 16)] + 0.1F * noise.data()[i];
  }
  const auto one_key = to_tensor(key.view().slice(1, 0, 1));
  const auto random = attention_diagnostics(query, key);
  const auto collapsed = attention_diagnostics(alike, one_key);
  report.say();
  report.say("  random         mean similarity {:.3f}", random.mean_similarity());
  report.say("  almost copies  mean similarity {:.3f}", collapsed.mean_similarity());
  report.record("random_similarity", random.similarity);
  const auto drawn = [](const char* title, const AttentionDiagnostics& diagnostics) {
    return DrawnMatrix{.title = title,
                       .values = matrix_from(diagnostics.similarity.view(), 2),
                       .query_title = "head",
                       .key_title = "head"};
  };
  report.draw(drawing_of(
      {.title = "How alike the heads are",
       .note = "Cosine similarity of what two heads look at, from 0 to 1. Above 0.9, heads are "
               "wasted.",
       .matrices = {drawn("random queries and keys", random), drawn("almost copies", collapsed)},
       .bar_title = "cosine similarity"}));
  report.record("collapsed_similarity", collapsed.mean_similarity());
  report.say();
  for (const Finding& finding : attention_findings(collapsed)) {
    report.say("  {} {}: {}", finding.is_problem ? "!" : "-", name_of(finding.kind),
               finding.measured);
  }
  report.say();
  report.paragraph(
      "Consistently above 0.9, heads are wasted: less dropout on the weights, a larger head_dim, "
      "or a loss that asks for difference.");
}

// Shows two sequences of six tokens whose last tokens are padding (0).
void show_padding(Report& report) {
  report.step("Attention to padding: must be 0");
  const Tensor<std::int64_t> ids({2, 6}, {5, 3, 7, 2, 0, 0, 8, 1, 4, 6, 9, 0});
  TorchGenerator generator(0);
  const auto x = generator.randn({2, 2, 6, 8});
  const DiagnosticsOptions lengths{{4, 5}, {4, 5}};
  report.say("  [5, 3, 7, 2, 0, 0]   four tokens and two of padding");
  report.say("  [8, 1, 4, 6, 9, 0]   five and one");
  report.say();
  struct Case {
    std::string_view name;
    std::string_view text;
    Mask mask;
  };
  const Tensor<bool> swapped =
      materialize_block(key_padding(ids, 0), {.batch = 2, .num_heads = 1, .q_len = 1, .kv_len = 6});
  for (const Case& it :
       {Case{"no_mask", "no mask", Mask()},
        Case{"wrong_polarity", "a mask of the other polarity", Mask::allow(swapped)},
        Case{"right_mask", "key_padding(ids, 0)", key_padding(ids, 0)}}) {
    const auto found = attention_diagnostics(x, x, {.mask = it.mask}, lengths);
    const double share = (found.heads[0].padding + found.heads[1].padding) / 2;
    report.say("  {:<30} {:.3f} of the weight on padding", it.text, share);
    report.record(std::string(it.name), share);
  }
  report.say();
  report.paragraph(
      "What to notice: every row summed to 1 in all three. A wrong mask that broadcasts raises no "
      "error: print mask and score shapes, or measure. See `heed lesson masks`.");
}

void show_same_output(Report& report) {
  report.step("Weights are not reasons");
  const Tensor<float> query({1, 1, 2, 2}, {4, 0, 0, 4});
  const Tensor<float> other({1, 1, 2, 2}, {0, 4, 4, 0});
  const Tensor<float> key({1, 1, 2, 2}, {1, 0, 0, 1});
  const Tensor<float> value({1, 1, 2, 2}, {1, 2, 1, 2});
  const auto a = reference::attention(query, key, value, {}, reference::Keep::kWeights);
  const auto b = reference::attention(other, key, value, {}, reference::Keep::kWeights);
  report.paragraph("Two models that look at opposite places of a source whose values are equal:");
  report.show("first_weights", "weights of the first:", a.weights, 3);
  report.show("second_weights", "weights of the second:", b.weights, 3);
  report.say();
  report.say("  largest difference of their outputs: {}", max_difference(a.out, b.out));
  report.record("output_difference", max_difference(a.out, b.out));
  report.say();
  report.paragraph(
      "What to notice: weights tell where a model looked, not why it decided. Use them to find "
      "mistakes, not to explain.");
}

void show_memory(Report& report) {
  report.step("Looking costs no matrix");
  const Shape weights{12, 4096, 4096};
  const std::int64_t bytes = checked_multiply(weights.num_elements(), sizeof(float));
  report.paragraph(
      "With n = 4096 and 12 heads in float32 the weights of a layer take {} bytes ({:.0f} MiB). "
      "All that is measured here is summed tile by tile: "
      "`attention_diagnostics` needs memory linear in n.",
      grouped(bytes), static_cast<double>(bytes) / (1 << 20));
  report.record("bytes", bytes);
}

void teach(Report& report) {
  report.paragraph(
      "A loss that falls says that something learns. Whether attention does, its weights tell, if "
      "one measures the right things. `heed diagnose` does so for saved models.");
  show_uniform(report);
  show_collapse(report);
  show_padding(report);
  show_same_output(report);
  show_memory(report);
}

}  // namespace diagnose_lesson

extern const Lesson kDiagnoseLesson = {
    "diagnose", "uniform, alike, on padding: how attention fails, and how to see it",
    diagnose_lesson::teach};

}  // namespace heed::learn
