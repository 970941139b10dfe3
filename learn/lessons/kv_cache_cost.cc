// The lesson kv-cache: the cost of a token, counted and measured.
#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "heed/attention.h"
#include "heed/core/parallel.h"
#include "heed/core/random.h"
#include "heed/nn/attention_layers.h"
#include "heed/viz/chart.h"
#include "lessons/drawing.h"
#include "lessons/kv_cache.h"
#include "lessons/numbers.h"

namespace heed::learn::kv_cache_lesson {

constexpr std::int64_t kWidth = 256;
constexpr std::int64_t kHeads = 4;

// Returns the multiply-adds of one layer for the token at position n if the keys of all n tokens
// are recomputed: four projections of n tokens, and a score and a weighted value for each visible
// pair.
std::int64_t operations_without(std::int64_t n) {
  return 4 * n * kWidth * kWidth + n * (n + 1) / 2 * 2 * kWidth;
}

// Returns the multiply-adds with a cache: four projections of one token, and n pairs.
std::int64_t operations_with(std::int64_t n) { return 4 * kWidth * kWidth + 2 * n * kWidth; }

void show_whole_text(Report& report, std::int64_t length) {
  std::int64_t without = 0;
  std::int64_t with = 0;
  for (std::int64_t n = 1; n <= length; ++n) {
    without += operations_without(n);
    with += operations_with(n);
  }
  report.record("text_operations", {{"length", length}, {"without", without}, {"with", with}});
  report.paragraph(
      "What to notice: a text of {} tokens takes {} operations without a cache and {} with one, "
      "which is what its last token alone takes without.",
      grouped(length), grouped(without), grouped(with));
}

// Shows the pairs that attention computes and the bytes that it reads for the token at position n.
void show_pairs(Report& report, std::span<const std::int64_t> positions) {
  constexpr std::int64_t kRow = 2 * kWidth * sizeof(float);  // bytes of a key and a value
  report.paragraph("Pairs of a query and a key, and bytes of keys and values in float32:");
  report.say();
  report.say("  {:>5} {:>11} {:>7} {:>16} {:>6} {:>17}", "n", "pairs", "", "bytes written", "",
             "bytes kept, read");
  report.say("  {:>5} {:>11} {:>7} {:>16} {:>6} {:>17}", "", "without", "with", "without", "with",
             "with");
  auto rows = nlohmann::json::array();
  for (const std::int64_t n : positions) {
    const std::int64_t pairs = n * (n + 1) / 2;
    report.say("  {:>5} {:>11} {:>7} {:>16} {:>6} {:>17}", n, grouped(pairs), grouped(n),
               grouped(n * kRow), grouped(kRow), grouped(n * kRow));
    rows.push_back({{"n", n},
                    {"pairs_without", pairs},
                    {"pairs_with", n},
                    {"bytes_written_without", n * kRow},
                    {"bytes_written_with", kRow},
                    {"bytes_kept", n * kRow}});
  }
  report.record("pairs", rows);
  report.say();
  report.paragraph(
      "What to notice: a token costs O(n) pairs instead of O(n²). The price is memory, and every "
      "token reads all of it, for one multiply-add a number.");
}

Costs show_operations(Report& report) {
  constexpr std::int64_t kPositions[] = {1, 4, 16, 64, 256, 1024, 4096, 10000};
  report.step("What a token costs: operations and bytes, counted");
  report.paragraph(
      "One layer of width d = {} in multiply-adds. Without a cache all n tokens go through the "
      "layer again, since the next layer's keys are made of their outputs:",
      kWidth);
  report.say();
  report.say("    without:  4 n d² + n (n + 1) d      with:  4 d² + 2 n d");
  report.say();
  report.say("  {:>5} {:>15} {:>11} {:>7}", "n", "without", "with", "ratio");
  Costs costs;
  auto rows = nlohmann::json::array();
  for (const std::int64_t n : kPositions) {
    const std::int64_t without = operations_without(n);
    const std::int64_t with = operations_with(n);
    report.say("  {:>5} {:>15} {:>11} {:>7.0f}", n, grouped(without), grouped(with),
               static_cast<double>(without) / static_cast<double>(with));
    rows.push_back({{"n", n}, {"without", without}, {"with", with}});
    costs.positions.push_back(static_cast<double>(n));
    costs.without.push_back(static_cast<double>(without));
    costs.with.push_back(static_cast<double>(with));
  }
  report.record("operations", rows);
  report.say();
  show_whole_text(report, 1024);
  report.say();
  show_pairs(report, kPositions);
  return costs;
}

nn::AttentionConfig causal_layer() {
  nn::AttentionConfig config = nn::separate_projections(kWidth, kHeads);
  config.mask = causal();
  return config;
}

// Returns the shortest of the runs that fit into `milliseconds`, of at least one.
template <class Run>
double shortest_within(double milliseconds, Run run) {
  double shortest = std::numeric_limits<double>::infinity();
  for (double spent = 0; spent < milliseconds;) {
    const double time = shortest_run(1, run);
    shortest = std::min(shortest, time);
    spent += time;
  }
  return shortest;
}

// Measures times. The text reports the measured values.
Costs show_times(Report& report) {
  constexpr std::int64_t kPositions[] = {64, 128, 256, 512, 1024};
  constexpr double kBudget = 30;  // milliseconds per measurement
  report.step("What a token costs: time, measured");
  report.paragraph(
      "The same layer with {} heads on one thread, measured here and now: forward() of all n "
      "tokens, and continued() of the last, the shortest of the runs in {:.0f} ms.",
      kHeads, kBudget);
  report.say();
  report.say("  {:>5} {:>14} {:>14} {:>8} {:>20}", "n", "without", "with", "ratio",
             "largest difference");
  const ThreadLimit one_thread(1);
  const nn::NoGrad no_grad;
  set_seed(0);
  nn::MultiHeadAttention<> layer(causal_layer());
  const auto x = default_generator().randn({1, kPositions[4], kWidth});
  const auto tokens = [&x](std::int64_t begin, std::int64_t end) {
    return nn::Variable<>(to_tensor(x.view().slice(1, begin, end)));
  };
  KvSequence past = layer.make_past();
  Costs costs;
  auto rows = nlohmann::json::array();
  for (const std::int64_t n : kPositions) {
    const auto all = tokens(0, n);
    const auto last = tokens(n - 1, n);
    layer.continued(past, tokens(past.length(), n - 1));
    const auto last_row = layer.continued(past, last).value();
    const auto every_row = layer.forward(all).out.value();
    const double difference = max_difference(every_row.view().slice(1, n - 1, n), last_row);
    const double without = shortest_within(kBudget, [&] { layer.forward(all); });
    const double with = shortest_within(kBudget, [&] {
      past.truncate(n - 1);
      layer.continued(past, last);
    });
    report.say("  {:>5} {:>11.3f} ms {:>11.3f} ms {:>8.1f} {:>20.2g}", n, without, with,
               without / with, difference);
    rows.push_back({{"n", n},
                    {"without_milliseconds", without},
                    {"with_milliseconds", with},
                    {"difference", difference}});
    costs.positions.push_back(static_cast<double>(n));
    costs.without.push_back(without);
    costs.with.push_back(with);
  }
  report.record("times", rows);
  report.say();
  const auto growth = [&](auto operations) {
    return static_cast<double>(operations(kPositions[4])) /
           static_cast<double>(operations(kPositions[0]));
  };
  report.paragraph(
      "What to notice: from token {} to token {} the time grew {:.1f} times without a cache and "
      "{:.1f} times with one; the operations alone say {:.1f} and {:.1f}. The differences are "
      "those of projections, as above.",
      kPositions[0], kPositions[4], costs.without.back() / costs.without.front(),
      costs.with.back() / costs.with.front(), growth(operations_without), growth(operations_with));
  return costs;
}

Drawing drawing_of_costs(const Costs& operations, const Costs& times) {
  return [operations, times](Theme theme) {
    const auto chart = [theme](const Costs& costs, std::string title, std::string unit) {
      return curves_figure(
          std::array{Curve{"without a cache", costs.positions, costs.without, true},
                     Curve{"with a cache", costs.positions, costs.with, true}},
          {.title = std::move(title),
           .x_title = "position n",
           .y_title = std::move(unit),
           .has_log_x = true,
           .has_log_y = true,
           .has_names_at_ends = true,
           .theme = theme});
    };
    return join(
        {.title = "What one more token costs, with and without a cache",
         .note = "One layer of width 256 with 4 heads. Left: counted. Right: measured on one "
                 "thread as this was drawn. Both axes are logarithmic."},
        {chart(operations, "operations", "multiply-adds"), chart(times, "time", "milliseconds")},
        theme);
  };
}

}  // namespace heed::learn::kv_cache_lesson
