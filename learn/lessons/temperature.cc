#include <cmath>

#include "gallery/pictures.h"
#include "heed/attention/reference.h"
#include "heed/core/random.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"

namespace heed::learn {

namespace temperature_lesson {

struct Inputs {
  Tensor<float> query;
  Tensor<float> key;
  Tensor<float> value;
};

// Draws torch.randn(1, 4, 8) three times after torch.manual_seed(42).
Inputs draw_inputs() {
  TorchGenerator generator(42);
  auto query = generator.randn({1, 1, 4, 8});
  auto key = generator.randn({1, 1, 4, 8});
  auto value = generator.randn({1, 1, 4, 8});
  return {std::move(query), std::move(key), std::move(value)};
}

Tensor<float> weights_at(const Inputs& inputs, double temperature) {
  const double scale = 1 / (std::sqrt(static_cast<double>(inputs.query.extent(-1))) * temperature);
  const AttentionOptions options{.scale = static_cast<float>(scale)};
  const auto keep = reference::Keep::kWeights;
  auto result = reference::attention(inputs.query, inputs.key, inputs.value, options, keep);
  return std::move(result.weights).reshaped({4, 4});
}

void show_matrices(Report& report, const Inputs& inputs) {
  report.step("Four queries, four keys, three temperatures");
  report.paragraph("PyTorch's seed 42, three times randn(1, 4, 8):");
  for (const double temperature : {0.5, 1.0, 2.0}) {
    report.say();
    report.show(fmt::format("weights_{:.1f}", temperature),
                fmt::format("Weights at τ = {}:", temperature), weights_at(inputs, temperature));
  }
  report.say();
  report.paragraph(
      "What to notice: the order within a row never changes, only how much the first is preferred. "
      "τ = 1 is attention as it is.");
}

void show_range(Report& report, const Inputs& inputs) {
  report.step("From cold to hot: the first query");
  report.say("  {:>5}   {:<36} {}", "τ", "weights", "largest");
  for (const double temperature : {0.1, 0.5, 1.0, 1.5, 2.0, 3.0}) {
    const auto weights = weights_at(inputs, temperature);
    const auto row = weights.view().select(0, 0);
    report.say("  {:>5.1f}   {:<36} {:.4f}", temperature, list(row), largest(row));
    report.record(fmt::format("first_row_{:.1f}", temperature), row);
  }
}

void show_limits(Report& report, const Inputs& inputs) {
  constexpr double kCold = 1e-4;
  constexpr double kHot = 1e6;
  report.step("The limits");
  report.show("cold", fmt::format("τ → 0 (here {}): one-hot, a look-up of the best key:", kCold),
              weights_at(inputs, kCold));
  report.say();
  report.show("hot", fmt::format("τ → ∞ (here {}): uniform, the plain mean of the values:", kHot),
              weights_at(inputs, kHot));
  report.say();
  report.paragraph(
      "What to notice: 1/√dₖ is a temperature too, chosen so that scores of random vectors have "
      "variance 1. See `heed lesson scaling`.");
}

void teach(Report& report) {
  report.paragraph("weights = softmax(Q Kᵀ / (√dₖ · τ)): the temperature τ divides the scores.");
  const Inputs inputs = draw_inputs();
  show_matrices(report, inputs);
  show_range(report, inputs);
  show_limits(report, inputs);
  report.draw(draw_temperatures);
}

}  // namespace temperature_lesson

extern const Lesson kTemperatureLesson = {"temperature", "sharp when cold, uniform when hot",
                                          temperature_lesson::teach};

}  // namespace heed::learn
