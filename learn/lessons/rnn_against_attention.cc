#include <array>
#include <cmath>

#include "heed/core/random.h"
#include "heed/nn/attention_layers.h"
#include "heed/nn/lstm.h"
#include "heed/nn/ops.h"
#include "heed/viz/chart.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"

namespace heed::learn {

namespace rnn_against_attention_lesson {

constexpr std::int64_t kLength = 1000;
constexpr std::int64_t kWidth = 512;

void show_operations(Report& report) {
  report.step("Operations: the textbook's count, and a whole layer's");
  const std::int64_t nd = checked_multiply(kLength, kWidth);
  const std::int64_t recurrent = checked_multiply(nd, kWidth);
  const std::int64_t attended = checked_multiply(nd, kLength);
  const std::int64_t lstm = checked_multiply(8, recurrent);
  const std::int64_t layer = checked_multiply(4, recurrent) + checked_multiply(2, attended);
  report.paragraph("n = {} words of width d = {}, in multiply-adds:", kLength, kWidth);
  report.say();
  report.say("  {:<38} {:<15} {:>13}", "", "grows as", "");
  report.say("  {:<38} {:<15} {:>13}", "recurrence, one product a step", "n · d²",
             grouped(recurrent));
  report.say("  {:<38} {:<15} {:>13}", "attention, the scores alone", "n² · d", grouped(attended));
  report.say("  {:<38} {:<15} {:>13}", "LSTM: four gates, of input and state", "8 n d²",
             grouped(lstm));
  report.say("  {:<38} {:<15} {:>13}", "attention with its four projections", "4 n d² + 2 n² d",
             grouped(layer));
  report.record("recurrent_operations", recurrent);
  report.record("attention_operations", attended);
  report.record("lstm_operations", lstm);
  report.record("layer_operations", layer);
  report.say();
  report.paragraph(
      "What to notice: whole layers cost the same at n = 2 d ({} here). Below, attention is the "
      "cheaper one, and far beyond, it is not.",
      2 * kWidth);
}

// Returns the dependence of the last output on each input, by distance: |∂ Σ out / ∂ x|.
std::vector<double> gradient_norms(const nn::Variable<>& x, const nn::Variable<>& out,
                                   std::span<const std::int64_t> distances) {
  const std::int64_t last = x.extent(1) - 1;
  nn::sum(nn::select(out, 1, last)).backward();
  std::vector<double> norms;
  for (const std::int64_t distance : distances) {
    double squares = 0;
    for (const float g : x.grad().select(0, 0).select(0, last - distance).elements()) {
      squares += static_cast<double>(g) * static_cast<double>(g);
    }
    norms.push_back(std::sqrt(squares));
  }
  x.zero_grad();
  return norms;
}

// Returns the gradients by distance, one curve for each layer.
std::array<Curve, 2> show_path(Report& report) {
  report.step("Path length: what is left of a word on its way");
  constexpr std::int64_t kDistances[] = {0, 1, 2, 4, 8, 16, 32, 64};
  constexpr std::int64_t kSmall = 16;
  set_seed(0);
  nn::LSTM<> lstm(kSmall, kSmall);
  nn::MultiHeadAttention<> attention(nn::separate_projections(kSmall, 1));
  const nn::Variable<> x(default_generator().randn({1, 65, kSmall}), true);
  const auto recurrent = gradient_norms(x, lstm.forward(x).out, kDistances);
  const auto attended = gradient_norms(x, attention.forward(x).out, kDistances);
  report.paragraph(
      "65 random words of width {}, layers as they are drawn from seed 0. How much the last output "
      "changes with a word so many places before, |∂ out / ∂ word|:",
      kSmall);
  report.say();
  report.say("  {:>8} {:>14} {:>12} {:>18} {:>12}", "distance", "steps of LSTM", "gradient",
             "steps of attention", "gradient");
  for (std::size_t i = 0; i < recurrent.size(); ++i) {
    report.say("  {:>8} {:>14} {:>12.3g} {:>18} {:>12.3g}", kDistances[i], kDistances[i] + 1,
               recurrent[i], 1, attended[i]);
  }
  report.record("distances",
                std::vector<std::int64_t>(std::begin(kDistances), std::end(kDistances)));
  report.record("lstm_gradient", recurrent);
  report.record("attention_gradient", attended);
  report.say();
  report.paragraph(
      "What to notice: through a recurrence, a gradient shrinks with every word between: after 64, "
      "{:.0e} of it is left. Attention reaches every word in one step, and its gradient depends on "
      "how much it looks there, not on how far that is.",
      recurrent.back() / recurrent.front());
  std::array curves{Curve{"LSTM", {}, recurrent, true}, Curve{"attention", {}, attended, true}};
  for (Curve& curve : curves) {
    curve.x.assign(std::begin(kDistances), std::end(kDistances));
  }
  return curves;
}

void show_times(Report& report) {
  report.step("Time: one after another, or all at once");
  constexpr std::int64_t kMeasuredWidth = 64;
  set_seed(0);
  nn::LSTM<> lstm(kMeasuredWidth, kMeasuredWidth);
  nn::MultiHeadAttention<> attention(nn::separate_projections(kMeasuredWidth, 1));
  const nn::NoGrad no_grad;
  report.paragraph("One sequence of width {}, one layer forward, measured here and now:",
                   kMeasuredWidth);
  report.say();
  report.say("  {:>5} {:>22} {:>10} {:>26} {:>10}", "n", "LSTM: steps in a row", "time",
             "attention: steps in a row", "time");
  auto rows = nlohmann::json::array();
  for (const std::int64_t length : {32, 64, 128, 256, 512}) {
    const nn::Variable<> x(default_generator().randn({1, length, kMeasuredWidth}));
    const double recurrent = shortest_run(3, [&] { lstm.forward(x); });
    const double attended = shortest_run(3, [&] { attention.forward(x); });
    report.say("  {:>5} {:>22} {:>7.3f} ms {:>26} {:>7.3f} ms", length, length, recurrent, 1,
               attended);
    rows.push_back({{"length", length},
                    {"lstm_milliseconds", recurrent},
                    {"attention_milliseconds", attended}});
  }
  report.record("times", rows);
  report.say();
  report.paragraph(
      "What to notice: the operations are of the same order, yet the steps of an LSTM wait for "
      "each other, however many processors there are. In training this is what counts: all "
      "positions of a sequence are known then.");
}

void show_rest(Report& report) {
  report.step("What else is said of the two");
  report.item(
      "Interpretability: a hidden state is opaque; weights say where a model looked. That is not "
      "yet why it decided as it did: see `heed lesson diagnose`.");
  report.item(
      "Order: a recurrence has it for nothing; attention needs positions: `heed lesson position`.");
  report.item(
      "Memory: a recurrence keeps one state however long the sequence; attention keeps every key "
      "and value: `heed lesson kv-cache`.");
}

void teach(Report& report) {
  report.paragraph(
      "A recurrent network reads word by word and hands one state on. Attention lets every word "
      "look at every other at once.");
  show_operations(report);
  const auto gradients = show_path(report);
  show_times(report);
  show_rest(report);
  report.draw([gradients](Theme theme) {
    return curves_figure(gradients, {.title = "What is left of a word, by distance",
                                     .note = "65 random words of width 16, layers as they are "
                                             "drawn from seed 0.",
                                     .x_title = "words between it and the last output",
                                     .y_title = "gradient |∂ out / ∂ word|",
                                     .has_log_y = true,
                                     .theme = theme});
  });
}

}  // namespace rnn_against_attention_lesson

extern const Lesson kRnnAgainstAttentionLesson = {
    "rnn-against-attention", "operations, path length and time, counted and measured",
    rnn_against_attention_lesson::teach};

}  // namespace heed::learn
