#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "gallery/pictures.h"
#include "heed/attention.h"
#include "heed/attention/reference.h"
#include "heed/core/parallel.h"
#include "heed/core/random.h"
#include "heed/nn/ops.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"

namespace heed::learn {

namespace complexity_lesson {

void show_operations(Report& report) {
  report.step("Operations: more, but all at once");
  constexpr std::int64_t kLength = 1000;
  constexpr std::int64_t kWidth = 512;
  const std::int64_t recurrent = checked_multiply(checked_multiply(kLength, kWidth), kWidth);
  const std::int64_t attended = checked_multiply(checked_multiply(kLength, kLength), kWidth);
  report.paragraph("A sequence of n = {} words of width d = {}:", kLength, kWidth);
  report.say();
  report.say("  {:<22} {:<8} {:>12}   {}", "", "grows as", "operations", "path between words");
  report.say("  {:<22} {:<8} {:>12}   {}", "recurrent, in turn", "n · d²", grouped(recurrent),
             "O(n): through all between");
  report.say("  {:<22} {:<8} {:>12}   {}", "attention, in parallel", "n² · d", grouped(attended),
             "O(1): directly");
  report.record("recurrent_operations", recurrent);
  report.record("attention_operations", attended);
  report.say();
  report.paragraph(
      "What to notice: attention does {:.1f} times the work, and each word's share waits for no "
      "other. A recurrent network takes {} steps one after another.",
      static_cast<double>(attended) / static_cast<double>(recurrent), kLength);
}

void show_memory(Report& report) {
  report.step("Bytes: one weight for each pair of words");
  const std::int64_t entries = checked_multiply(10'000, 10'000);
  const Shape weights{12, 4096, 4096};
  const std::int64_t bytes = checked_multiply(weights.num_elements(), sizeof(float));
  const std::int64_t rows_only = checked_multiply(checked_multiply(12, 4096), sizeof(float));
  report.say("  n = 10,000, one head:             {:>11} weights", grouped(entries));
  report.say("  n = 4096, 12 heads, in float32:   {:>11} bytes a layer ({:.0f} MiB)",
             grouped(bytes), static_cast<double>(bytes) / (1 << 20));
  report.record("entries", entries);
  report.record("bytes_per_layer", bytes);
  report.say();
  report.paragraph(
      "Nobody has to keep them. An output needs its row of weights once, and of that row only log "
      "Σ exp(s) is worth keeping: {} bytes for the same layer. heed stores the table only for "
      "those who ask to see it.",
      grouped(rows_only));
  report.record("lse_bytes", rows_only);
}

// Measures times. The text compares the measured ratios with the counted operations.
void show_times(Report& report) {
  constexpr std::int64_t kLengths[] = {256, 512, 1024, 2048};
  constexpr int kRuns = 9;
  report.step("Time: twice the words, four times the wait");
  report.paragraph(
      "attention(x, x, x), one head of width 32 on one thread, measured here and now: the "
      "shortest of {} runs.",
      kRuns);
  report.say();
  report.say("  {:>5} {:>12} {:>12}   {}", "n", "n² · d", "time", "growth");
  const ThreadLimit one_thread(1);
  TorchGenerator generator(0);
  std::vector<double> times;
  auto rows = nlohmann::json::array();
  for (const std::int64_t length : kLengths) {
    const auto x = generator.randn({1, 1, length, 32});
    attention(x, x, x);  // the first call of a size also allocates its memory
    const double time = shortest_run(kRuns, [&x] { attention(x, x, x); });
    const std::int64_t operations = checked_multiply(checked_multiply(length, length), 32);
    const std::string growth = times.empty() ? "" : fmt::format("   × {:.1f}", time / times.back());
    report.say("  {:>5} {:>12} {:>9.3f} ms{}", length, grouped(operations), time, growth);
    rows.push_back({{"length", length}, {"operations", operations}, {"milliseconds", time}});
    times.push_back(time);
  }
  report.record("times", rows);
  report.say();
  const std::int64_t longer = kLengths[3] / kLengths[0];
  report.paragraph(
      "What to notice: {} times as many words took {:.0f} times as long here; the operations alone "
      "say {}. What every call and every row costs besides makes the growth smaller where n is "
      "small, and a machine that does something else meanwhile makes times differ from run to run.",
      longer, times.back() / times.front(), longer * longer);
}

// Attention as the tutorials write it: product, mask, softmax, product, each a matrix in memory.
// BLAS computes the products.
class ManualAttention {
 public:
  ManualAttention(const Tensor<float>& query, const Tensor<float>& key, const Tensor<float>& value)
      : query_(query),
        transposed_key_(to_tensor(key.view().permute({0, 1, 3, 2}))),
        value_(value),
        mask_(materialize_additive(causal(), {1, 1, query.extent(2), key.extent(2)})),
        scale_(1 / std::sqrt(static_cast<float>(query.extent(3)))) {}

  Tensor<float> operator()() const {
    const nn::NoGrad no_grad;
    const nn::Variable<float> scores = scale_ * nn::matmul(query_, transposed_key_) + mask_;
    return nn::matmul(nn::softmax(scores), value_).value();
  }

 private:
  nn::Variable<float> query_;
  nn::Variable<float> transposed_key_;
  nn::Variable<float> value_;
  nn::Variable<float> mask_;  // 0 and −∞
  float scale_;
};

// A way to compute the same, and the milliseconds of its calls.
struct Method {
  const char* name;
  std::function<Tensor<float>()> call;
  int first = 0;  // the turn from which it takes part
  std::vector<double> times = {};

  double median() {
    std::sort(times.begin(), times.end());
    return (times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2;
  }
};

// The methods take turns, so that whatever disturbs the machine meets all of them.
void time_in_turn(std::vector<Method>& methods, int warmups, int runs) {
  for (int i = 0; i < warmups + runs; ++i) {
    for (Method& method : methods) {
      if (i < method.first) continue;
      const double time = shortest_run(1, method.call);
      if (i >= warmups) method.times.push_back(time);
    }
  }
}

void show_fused(Report& report) {
  constexpr int kWarmups = 5;
  constexpr int kRuns = 20;
  constexpr int kSlowRuns = 3;
  const Shape shape{1, 8, 256, 64};
  report.step("A benchmark: by hand, and fused");
  report.paragraph(
      "Batch 1, 8 heads, 256 tokens of 64 dimensions, causal, on one thread: {} calls to warm up, "
      "then {} of each in turn. By hand the scores, the weights and the output are computed one "
      "after the other as whole matrices, the products by BLAS; plain loops do so too, {} times; "
      "the fused call, attention(), keeps a tile of them at a time. Medians, measured here and "
      "now:",
      kWarmups, kRuns, kSlowRuns);
  const ThreadLimit one_thread(1);
  TorchGenerator generator(0);
  const auto query = generator.randn(shape);
  const auto key = generator.randn(shape);
  const auto value = generator.randn(shape);
  const AttentionOptions options{.mask = causal()};
  std::vector<Method> methods{
      {"plain loops",
       [&] {
         return reference::attention(query, key, value, options, reference::Keep::kWeights).out;
       },
       kWarmups + kRuns - kSlowRuns},
      {"by hand", ManualAttention(query, key, value)},
      {"fused", [&] { return attention(query, key, value, options); }}};
  const Tensor<float> fused = methods.back().call();
  time_in_turn(methods, kWarmups, kRuns);
  const double fused_time = methods.back().median();
  double difference = 0;
  auto rows = nlohmann::json::array();
  report.say();
  report.say("  {:<12} {:>12} {:>22}", "", "ms a call", "the fused call's time");
  for (Method& method : methods) {
    difference = std::max(difference, max_difference(method.call(), fused));
    report.say("  {:<12} {:>12.3f} {:>20.1f} ×", method.name, method.median(),
               method.median() / fused_time);
    rows.push_back({{"method", method.name}, {"milliseconds", method.median()}});
  }
  report.record("methods", rows);
  report.record("largest_difference", difference);
  report.say();
  report.paragraph(
      "What to notice: the results differ by {:.0e} at most. By hand all pairs are computed, those "
      "that the mask hides too, and {} bytes of scores and as many of weights are written and read "
      "again. The lesson flash-attention shows how to do without.",
      difference, grouped(8 * 256 * 256 * static_cast<std::int64_t>(sizeof(float))));
}

void teach(Report& report) {
  report.paragraph("Attention compares every word with every other: n² pairs, d products each.");
  show_operations(report);
  show_memory(report);
  show_times(report);
  show_fused(report);
  report.draw(draw_operations);
}

}  // namespace complexity_lesson

extern const Lesson kComplexityLesson = {
    "complexity", "operations, bytes, times; by hand and fused", complexity_lesson::teach};

}  // namespace heed::learn
