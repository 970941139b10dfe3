// The lesson sparse-attention: how far information travels through layers.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bitset>
#include <cmath>
#include <optional>
#include <utility>

#include "heed/attention.h"
#include "heed/core/random.h"
#include "lessons/sparse_attention.h"

namespace heed::learn::sparse_attention_lesson {

// The inputs on which each position depends, one row of bits per position.
class Reach {
 public:
  static constexpr std::size_t kLongest = 256;

  // Starts before the first layer: each position depends on itself. Layers have residual
  // connections.
  Reach(const Mask& mask, std::int64_t length)
      : rows_(static_cast<std::size_t>(length)), layer_(rows_.size()) {
    const auto visible = materialize_allow(mask, {.q_len = length, .kv_len = length});
    auto cell = visible.elements().begin();
    for (std::size_t q = 0; q < layer_.size(); ++q) {
      rows_[q].set(q);
      for (std::size_t k = 0; k < layer_.size(); ++k) layer_[q][k] = *cell++;
      layer_[q].set(q);
    }
  }

  // Applies one more layer: a boolean product of the mask's matrix with this one.
  void add_layer() {
    std::vector<Row> next(rows_.size());
    for (std::size_t q = 0; q < rows_.size(); ++q) {
      for (std::size_t k = 0; k < rows_.size(); ++k) {
        if (layer_[q][k]) next[q] |= rows_[k];
      }
    }
    rows_ = std::move(next);
  }

  // True if each position depends on all positions, or if causal on all up to its own.
  bool is_complete(bool is_causal) const {
    for (std::size_t q = 0; q < rows_.size(); ++q) {
      if (rows_[q].count() != (is_causal ? q + 1 : rows_.size())) return false;
    }
    return true;
  }

  // Returns the distance from the last position to the furthest input on which it depends.
  std::int64_t distance_of_last() const {
    std::size_t first = 0;
    while (!rows_.back()[first]) ++first;
    return static_cast<std::int64_t>(rows_.size() - 1 - first);
  }

  friend bool operator==(const Reach&, const Reach&) = default;

 private:
  using Row = std::bitset<kLongest>;
  std::vector<Row> rows_;
  std::vector<Row> layer_;
};

// Returns the number of layers until each position depends on all that it should; empty if further
// layers stop adding positions before that.
std::optional<std::int64_t> layers_to_see_all(const Mask& mask, std::int64_t length,
                                              bool is_causal) {
  Reach reach(mask, length);
  for (std::int64_t layers = 1;; ++layers) {
    const Reach before = reach;
    reach.add_layer();
    if (reach.is_complete(is_causal)) return layers;
    if (reach == before) return std::nullopt;
  }
}

nlohmann::json show_layers(Report& report, const std::vector<const char*>& masks, bool is_causal) {
  constexpr std::array<std::int64_t, 3> kLengths{64, 128, 256};
  auto rows = nlohmann::json::array();
  for (const char* name : masks) {
    std::string line = fmt::format("  {:<50}", name);
    auto found = nlohmann::json::array();
    for (const std::int64_t length : kLengths) {
      const auto layers = layers_to_see_all(parsed(name).mask, length, is_causal);
      line += fmt::format(" {:>7}", layers ? fmt::format("{}", *layers) : "never");
      found.push_back(layers ? nlohmann::json(*layers) : nlohmann::json(nullptr));
    }
    report.say("{}", line);
    rows.push_back({{"mask", name}, {"lengths", kLengths}, {"layers", found}});
  }
  return rows;
}

void show_reach(Report& report) {
  report.step("How far information travels");
  report.paragraph(
      "A position knows what it sees, and in the next layer what these saw: the matrices of the "
      "layers multiply (with 1 + 1 = 1, and each position keeping its own). Layers until each "
      "position depends on all of T:");
  report.say();
  report.say("  {:<50} {:>7} {:>7} {:>7}", "both directions", "T = 64", "128", "256");
  report.record("layers",
                show_layers(report,
                            {"sliding_window(8, 8)", "block_window(1, 1, 8)", "dilated(8, 4)",
                             "strided(8)", "columns(8)", "global_tokens(1)", "longformer(8, 1)",
                             "sliding_window(8, 8) | strided(8)", "random_blocks(2, 8, 0)",
                             "bigbird(8, 3, 1, 1, 0)"},
                            false));
  report.say();
  report.say("  and on all before it, where no one sees the future");
  report.record("causal_layers", show_layers(report,
                                             {"causal & sliding_window(8, 0)", "streaming(1, 9)",
                                              "causal & longformer(8, 1)", "sparse_transformer(8)",
                                              "causal & (block_window(0, 0, 8) | columns(8))",
                                              "causal & bigbird(8, 3, 1, 1, 0)"},
                                             true));
  report.say();
  report.paragraph(
      "What to notice: a window of w takes ⌈(T − 1) / w⌉ layers, so that a text twice as long "
      "needs twice as many. strided, columns, dilated and random blocks as few as these never "
      "connect some positions. A "
      "global token connects any two in 2 layers: the first tells it, it tells the second. But "
      "not under causal: the first tokens then know nothing of later ones, and global_tokens and "
      "the sinks of streaming shorten the way from no other. Strides and columns do, and random "
      "blocks somewhat.");
}

// Applies `layers` layers of attention under one mask, each on the output of the previous.
Tensor<double> through_layers(Tensor<double> x, const Mask& mask, std::int64_t layers) {
  for (std::int64_t layer = 0; layer < layers; ++layer) x = attention(x, x, x, {.mask = mask});
  return x;
}

constexpr std::int64_t kText = 64;  // tokens of the text below

// Returns the largest change of the last output when the token `gap` positions before it changes.
double change_of_last(const Mask& mask, std::int64_t layers, std::int64_t gap) {
  TorchGenerator generator(0);
  auto x = generator.randn<double>({1, 1, kText, 8});
  const auto before = through_layers(x, mask, layers);
  for_each_element(x.view().slice(2, kText - 1 - gap, kText - gap),
                   [](double& number) { number = -number; });
  const auto after = through_layers(x, mask, layers);
  double change = 0;
  for (std::int64_t d = 0; d < before.extent(3); ++d) {
    change = std::max(change, std::abs(after(0, 0, kText - 1, d) - before(0, 0, kText - 1, d)));
  }
  return change;
}

void show_window_limit(Report& report, const Mask& window) {
  report.say("  {:>6} {:>22} {:>22} {:>22}", "layers", "reach, by matrices", "change at the reach",
             "one place further");
  auto rows = nlohmann::json::array();
  std::vector<double> changes;
  Reach reach(window, kText);
  for (std::int64_t layers = 1; layers <= 4; ++layers) {
    reach.add_layer();
    const std::int64_t furthest = reach.distance_of_last();
    const double within = change_of_last(window, layers, furthest);
    const double beyond = change_of_last(window, layers, furthest + 1);
    changes.push_back(within);
    report.say("  {:>6} {:>22} {:>22.2g} {:>22.2g}", layers, furthest, within, beyond);
    rows.push_back({{"layers", layers}, {"reach", furthest}, {"beyond", beyond}});
  }
  report.record("window", rows);
  report.record("window_changes", changes);
}

void show_repairs(Report& report) {
  constexpr std::int64_t kGap = 37;
  report.paragraph("The token {} places before the last, more than 4 layers of 8 reach:", kGap);
  report.say();
  report.say("  {:<50} {:>6} {:>10}", "mask", "layers", "change");
  struct Repair {
    const char* mask;
    std::int64_t layers;
  };
  auto rows = nlohmann::json::array();
  for (const Repair& repair : {Repair{"causal & sliding_window(8, 0)", 4},
                               {"streaming(1, 9)", 4},
                               {"causal & longformer(8, 1)", 4},
                               {"causal & sliding_window(8, 0)", 5},
                               {"sparse_transformer(8)", 2},
                               {"causal & (block_window(0, 0, 8) | columns(8))", 2},
                               {"longformer(8, 1)", 2}}) {
    const double change = change_of_last(parsed(repair.mask).mask, repair.layers, kGap);
    report.say("  {:<50} {:>6} {:>10.2g}", repair.mask, repair.layers, change);
    rows.push_back({{"mask", repair.mask}, {"layers", repair.layers}, {"change", change}});
  }
  report.record("repairs", {{"gap", kGap}, {"rows", rows}});
  report.say();
  report.paragraph(
      "0 is exact: what a mask hides changes no bit. A window is repaired by more layers, by a "
      "stride or columns, or, where the future may be seen, by a global token.");
}

void show_gap(Report& report) {
  report.step("What a window cannot do");
  report.paragraph(
      "{} drawn tokens (seed 0) go through layers x ← attention(x, x, x) under causal & "
      "sliding_window(8, 0), in double. One token gets the opposite sign. How much the last output "
      "changes at most:",
      kText);
  report.say();
  show_window_limit(report, parsed("causal & sliding_window(8, 0)").mask);
  report.say();
  show_repairs(report);
}

}  // namespace heed::learn::sparse_attention_lesson
