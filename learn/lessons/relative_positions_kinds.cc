// The lesson relative-positions: the score of each kind of positions as a function of distance.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "heed/attention.h"
#include "heed/attention/position.h"
#include "heed/attention/reference.h"
#include "heed/attention/rotary.h"
#include "heed/core/random.h"
#include "heed/viz/chart.h"
#include "lessons/drawing.h"
#include "lessons/relative_positions.h"

namespace heed::learn::relative_positions_lesson {

// Returns attention's scores, with all terms added, of the query [width] at `position` and the keys
// [positions, width] at 0 … position, the nearest first.
std::vector<double> scores_by_distance(DoubleView query, DoubleView keys, std::int64_t position,
                                       AttentionOptions64 options = {}) {
  const DoubleView row = query.to_rank(4);
  const DoubleView seen = keys.slice(0, 0, position + 1).to_rank(4);
  options.query_offset = position;
  const auto result =
      reference::attention(row, seen, seen, options, reference::Keep::kModified).modified;
  return {result.elements().rbegin(), result.elements().rend()};
}

// Returns the added terms alone: queries and keys are 0.
std::vector<double> terms_by_distance(std::int64_t position, const AttentionOptions64& options) {
  const Tensor<double> nothing({kLongest, kWidth});
  return scores_by_distance(nothing.view().slice(0, 0, 1), nothing, position, options);
}

Kind encoding(std::string name, Tensor<double> table) {
  const bool ends = table.extent(0) < kLongest;
  return {.name = std::move(name),
          .equation = "PE(m) · PE(n) / √d",
          .scores =
              [table = std::move(table)](std::int64_t position) {
                return scores_by_distance(table.view().slice(0, position, position + 1), table,
                                          position);
              },
          .ends = ends};
}

// Uses one drawn vector as query and as key.
Kind rotary() {
  TorchGenerator generator(0);
  const auto caches = rotary_caches<double>(kLongest, kWidth);
  const auto one = generator.randn<double>({1, 1, 1, kWidth});
  const auto all = to_tensor(one.view().broadcast_to({1, 1, kLongest, kWidth}));
  auto kind =
      encoding("rotary", rotary_embedding(all, caches.cos, caches.sin, RotaryPairing::kHalves)
                             .reshaped({kLongest, kWidth}));
  kind.equation = "R(m) q · R(n) k / √d";
  return kind;
}

Kind alibi() {
  return {.name = "alibi", .equation = "− slope · (m − n)", .scores = [](std::int64_t position) {
            const auto slopes = alibi_slopes<double>(kHeads);
            return terms_by_distance(
                position, {.alibi_slopes = slopes.view().slice(0, kShownHead, kShownHead + 1)});
          }};
}

Kind biases(std::string name, const RelativeBuckets& buckets) {
  TorchGenerator generator(0);
  return {.name = std::move(name),
          .equation = "table[bucket(n − m)]",
          .scores = [buckets,
                     table = generator.randn<double>({1, buckets.count()})](std::int64_t position) {
            return terms_by_distance(position, {.relative_bias = {{table, buckets}}});
          }};
}

Kind shaw() {
  TorchGenerator generator(0);
  const auto buckets = RelativeBuckets::clip(kClipped);
  return {.name = "shaw",
          .equation = "q · table[bucket(n − m)] / √d; values have vectors too",
          .scores =
              [buckets, query = generator.randn<double>({1, kWidth}),
               table = generator.randn<double>({buckets.count(), kWidth})](std::int64_t position) {
                const Tensor<double> no_keys({kLongest, kWidth});
                AttentionOptions64 options;
                options.relative_vectors = {.key = table, .buckets = buckets};
                return scores_by_distance(query, no_keys, position, options);
              }};
}

std::vector<Kind> all_kinds() {
  TorchGenerator generator(0);
  return {encoding("sinusoidal", sinusoidal_encoding<double>(kLongest, kWidth)),
          encoding("learned", learned_encoding<double>(generator, kTrained, kWidth, 1)),
          rotary(),
          alibi(),
          biases("t5", RelativeBuckets::t5(32, 128, false)),
          biases("clip", RelativeBuckets::clip(kClipped)),
          shaw()};
}

// Returns how much a score at a fixed distance depends on the position of the query.
double change_by_place(const Kind& kind) {
  const auto last = kind.scores(kTrained - 1);
  double change = 0;
  for (std::int64_t position = 0; position < kTrained; ++position) {
    const auto scores = kind.scores(position);
    for (std::size_t j = 0; j < scores.size(); ++j) {
      change = std::max(change, std::abs(scores[j] - last[j]));
    }
  }
  return change;
}

std::string head_of(std::span<const std::size_t> distances) {
  std::string line = fmt::format("  {:<11}", "distance");
  for (const std::size_t distance : distances) line += fmt::format(" {:>8}", distance);
  return line;
}

std::string line_of(std::string_view name, const std::vector<double>& scores,
                    std::span<const std::size_t> distances) {
  std::string line = fmt::format("  {:<11}", name);
  for (const std::size_t distance : distances) {
    line += distance < scores.size() ? fmt::format(" {:>8.4f}", scores[distance])
                                     : fmt::format(" {:>8}", "–");
  }
  return line;
}

void show_distances(Report& report, const std::vector<Kind>& kinds) {
  constexpr std::array<std::size_t, 6> kShown{0, 1, 4, 16, 64, kTrained - 1};
  report.step("The score as a function of distance");
  for (const Kind& kind : kinds) report.say("    {:<11} {}", kind.name, kind.equation);
  report.say();
  report.paragraph(
      "bucket() tells near distances apart and far ones less, or not at all: clip and shaw here "
      "count to {}, t5 counts on by the logarithm. Tables, queries and keys are drawn (seed 0; "
      "for rotary, query and key are one vector), d = {}. sinusoidal and learned are the encodings "
      "alone; alibi, t5, clip and shaw what is added to q · k / √d; alibi has the slope of head {} "
      "of {}. The scores of the last of {} queries, as the plain loops compute them:",
      kClipped, kWidth, kShownHead + 1, kHeads, kTrained);
  report.say();
  report.say("{}   by place", head_of(kShown));
  auto rows = nlohmann::json::array();
  for (const Kind& kind : kinds) {
    const auto scores = kind.scores(kTrained - 1);
    const double change = change_by_place(kind);
    report.say("{} {:>10.1e}", line_of(kind.name, scores, kShown), change);
    rows.push_back({{"positions", kind.name}, {"scores", scores}, {"change_by_place", change}});
  }
  report.record("distances", rows);
  report.say();
  report.paragraph(
      "\"By place\" is the most by which another query's score at the same distance differs. What "
      "to notice: of learned encodings no score is a function of the distance. alibi and the "
      "tables give the same number everywhere, sinusoidal and rotary do so but for rounding.");
}

Figure panel_of_kind(const Kind& kind, Theme theme) {
  constexpr std::int64_t kDrawn = 3 * kTrained;
  const auto scores = kind.scores(kDrawn - 1);
  std::array curves{Curve{"distances of training", {}, {}}, Curve{"beyond", {}, {}}};
  for (std::int64_t distance = 0; distance < kDrawn; ++distance) {
    const double score = scores[static_cast<std::size_t>(distance)];
    const auto add_to = [&](Curve& curve) {
      curve.x.push_back(static_cast<double>(distance));
      curve.y.push_back(score);
    };
    if (distance < kTrained) add_to(curves[0]);
    if (distance >= kTrained - 1) add_to(curves[1]);
  }
  return curves_figure(curves, {.title = kind.name,
                                .x_title = "distance from the key to the query",
                                .y_title = "score",
                                .theme = theme});
}

Drawing drawing_of_scores(const std::vector<Kind>& kinds) {
  return [kinds](Theme theme) {
    std::vector<Figure> panels;
    for (const Kind& kind : kinds) {
      if (!kind.ends) panels.push_back(panel_of_kind(kind, theme));
    }
    Figure figure = join(
        {.title = "The score as a function of distance, for each kind of positions",
         .note = fmt::format("d = {}. Tables, queries and keys are drawn, not learned. Learned "
                             "encodings have no function of distance, and end at {} positions.",
                             kWidth, kTrained),
         .width = 280,
         .height = 180},
        std::move(panels), theme);
    figure.columns = 3;
    return figure;
  };
}

}  // namespace heed::learn::relative_positions_lesson
