// Pictures of what was trained and timed.
#include <array>
#include <cstddef>
#include <vector>

#include "gallery/pictures.h"
#include "heed/viz/chart.h"
#include "lessons/tiny_copy.h"

namespace heed::learn {

namespace {

// The mean loss of each ten steps.
Curve learning_curve(const char* name, const char* positions) {
  constexpr std::int64_t kSteps = 300;
  constexpr double kRate = 0.01;
  constexpr std::size_t kTogether = 10;
  const std::vector<double> losses = TinyCopy(positions).train(kSteps, kRate);
  Curve curve{.name = name};
  for (std::size_t first = 0; first < losses.size(); first += kTogether) {
    double sum = 0;
    for (std::size_t i = 0; i < kTogether; ++i) sum += losses[first + i];
    curve.x.push_back(static_cast<double>(first + kTogether));
    curve.y.push_back(sum / kTogether);
  }
  return curve;
}

}  // namespace

Figure draw_learning_curve(Theme theme) {
  static const std::array curves{learning_curve("with positions", "sinusoidal"),
                                 learning_curve("without", "none")};
  return curves_figure(
      curves, {.title = "Learning to copy",
               .note = "One layer of four heads, trained as this was drawn, to repeat five "
                       "symbols of eight; the mean of each ten steps. A guess has ln 8 = "
                       "2.08.",
               .x_title = "step",
               .y_title = "loss (nats)",
               .y_low = 0,
               .theme = theme});
}

Figure draw_time_against_length(Theme theme) {
  const std::vector<double> lengths{256, 1024, 4096, 16384};
  const std::array curves{Curve{"softmax attention", lengths, {1.01, 15.4, 254, 4490}, true},
                          Curve{"elu + 1 features", lengths, {1.16, 6.35, 25.5, 102}, true},
                          Curve{"linear rule, causal", lengths, {0.39, 1.73, 7.9, 30}, true}};
  return curves_figure(curves, {.title = "Time against length",
                                .note = "Measured: the table \"In linear time\" of "
                                        "docs/performance.md, where machine and method stand.",
                                .x_title = "tokens",
                                .y_title = "milliseconds",
                                .has_log_x = true,
                                .has_log_y = true,
                                .theme = theme});
}

}  // namespace heed::learn
