// Pictures of a training and of measured times.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "gallery/pictures.h"
#include "heed/viz/chart.h"
#include "lessons/tiny_copy.h"

namespace heed::learn {

namespace {

// Returns the mean loss of each ten steps.
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

Figure times_figure(std::span<const Curve> curves, const std::string& note, Theme theme) {
  return curves_figure(curves, {.title = "Time against length",
                                .note = note,
                                .x_title = "length, tokens",
                                .y_title = "time, ms",
                                .has_log_x = true,
                                .has_log_y = true,
                                .theme = theme});
}

// Returns a curve for each method and mask, of the results whose number of heads, dimensions and
// threads equal those of the first.
std::vector<Curve> curves_of(const nlohmann::json& results) {
  const nlohmann::json& first = results.at(0).at("case");
  std::vector<Curve> curves;
  for (const nlohmann::json& result : results) {
    const nlohmann::json& one = result.at("case");
    const bool is_alike = one.at("heads") == first.at("heads") &&
                          one.at("head_dim") == first.at("head_dim") &&
                          one.at("threads") == first.at("threads");
    if (!is_alike) continue;
    const bool is_causal = one.at("mask") == "causal";
    const std::string name = one.at("method").get<std::string>() + (is_causal ? ", causal" : "");
    auto curve = std::find_if(curves.begin(), curves.end(),
                              [&](const Curve& each) { return each.name == name; });
    if (curve == curves.end()) {
      curves.push_back({name, {}, {}, true});
      curve = curves.end() - 1;
    }
    curve->x.push_back(one.at("seq").get<double>());
    curve->y.push_back(result.at("median_ms").get<double>());
  }
  return curves;
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
               .x_title = "training step",
               .y_title = "loss, nats",
               .y_low = 0,
               .theme = theme});
}

Figure draw_time_against_length(Theme theme) {
  const std::vector<double> lengths{256, 1024, 4096, 16384};
  const std::array curves{Curve{"softmax attention", lengths, {1.01, 15.4, 254, 4490}, true},
                          Curve{"elu + 1 features", lengths, {1.16, 6.35, 25.5, 102}, true},
                          Curve{"linear rule, causal", lengths, {0.39, 1.73, 7.9, 30}, true}};
  return times_figure(
      curves,
      "Measured: the table \"In linear time\" of docs/performance.md, where machine "
      "and method stand.",
      theme);
}

Figure draw_time_against_length(const nlohmann::json& report, Theme theme) {
  try {
    const nlohmann::json& results = report.at("results");
    const nlohmann::json& first = results.at(0).at("case");
    const auto processor = report.at("machine").at("processor").get<std::string>();
    const std::string note = fmt::format(
        "Measured by `heed bench linear`: {} heads of {} dimensions, {} threads, medians. {}",
        first.at("heads").get<std::int64_t>(), first.at("head_dim").get<std::int64_t>(),
        first.at("threads").get<std::int64_t>(), processor);
    return times_figure(curves_of(results), note, theme);
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error("there are no results as `heed bench linear --json` prints them");
  }
}

}  // namespace heed::learn
