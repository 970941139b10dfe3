// The lesson sparse-attention: named patterns, their combinations, and their cost.
#include "lessons/sparse_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "heed/attention/block_layout.h"
#include "heed/attention/mask_text.h"
#include "heed/viz/attention_figure.h"
#include "lessons/lesson.h"
#include "lessons/numbers.h"

namespace heed::learn {

namespace sparse_attention_lesson {

constexpr std::int64_t kSmall = 16;  // the length of drawn masks

ScoreShape square(std::int64_t length) { return {.q_len = length, .kv_len = length}; }

double share_of_pairs(std::int64_t pairs, std::int64_t length) {
  return static_cast<double>(pairs) / static_cast<double>(length * length);
}

Pattern parsed(const std::string& text) { return {text, parse_mask(text)}; }

// Returns a mask of blocks of 4 queries and 4 keys.
Pattern own_blocks() {
  const Mask mask = Mask::blocks({.q_len = kSmall,
                                  .kv_len = kSmall,
                                  .q_block = 4,
                                  .kv_block = 4,
                                  .row_begin = {0, 2, 3, 5, 8},
                                  .columns = {0, 3, 1, 0, 2, 0, 1, 3}});
  return {mask.description(), mask};
}

std::vector<Pattern> small_patterns() {
  std::vector<Pattern> patterns;
  for (const char* text : {"causal", "sliding_window(2, 2)", "global_tokens(2)", "strided(4)",
                           "columns(4)", "dilated(2, 3)", "random_blocks(1, 4, 0)"}) {
    patterns.push_back(parsed(text));
  }
  patterns.push_back(own_blocks());
  for (const char* text :
       {"longformer(2, 1)", "bigbird(2, 3, 1, 1, 0)", "sparse_transformer(4)", "streaming(2, 4)"}) {
    patterns.push_back(parsed(text));
  }
  return patterns;
}

std::vector<std::string> small_picture(const Pattern& pattern, std::int64_t length) {
  const std::int64_t pairs = count_visible(pattern.mask, square(length));
  std::vector<std::string> lines{
      pattern.name, fmt::format("{} pairs, {:.1f} %", pairs, 100 * share_of_pairs(pairs, length))};
  for (std::string& line : to_lines(pattern.mask, square(length))) lines.push_back(std::move(line));
  return lines;
}

void show_side_by_side(Report& report, const std::vector<Pattern>& patterns, std::int64_t length) {
  constexpr std::size_t kColumns = 3;
  for (std::size_t first = 0; first < patterns.size(); first += kColumns) {
    std::vector<std::string> lines(static_cast<std::size_t>(length) + 2, " ");
    for (std::size_t i = first; i < std::min(first + kColumns, patterns.size()); ++i) {
      const auto picture = small_picture(patterns[i], length);
      for (std::size_t row = 0; row < lines.size(); ++row) {
        lines[row] += fmt::format(" {:<25}", picture[row]);
      }
    }
    report.say();
    for (const std::string& line : lines) {
      report.say("{}", line.substr(0, line.find_last_not_of(' ') + 1));
    }
  }
}

nlohmann::json drawn(const std::vector<Pattern>& patterns, std::int64_t length) {
  auto rows = nlohmann::json::array();
  for (const Pattern& pattern : patterns) {
    rows.push_back({{"mask", pattern.name},
                    {"pairs", count_visible(pattern.mask, square(length))},
                    {"lines", to_lines(pattern.mask, square(length))}});
  }
  return rows;
}

void show_patterns(Report& report) {
  report.step("Patterns, by name");
  report.paragraph(
      "Rows are queries, columns keys, # is visible, {} of each: {} pairs in all. What the numbers "
      "mean stands in docs/masks.md; parse_mask() reads these texts, as does --mask.",
      kSmall, kSmall * kSmall);
  const std::vector<Pattern> patterns = small_patterns();
  show_side_by_side(report, patterns, kSmall);
  report.record("patterns", drawn(patterns, kSmall));
  report.say();
  report.paragraph(
      "What to notice: windows, strided and dilated move along with the query; global tokens, "
      "columns "
      "and blocks stay where they are; streaming has both. random_blocks are drawn from a seed, in "
      "each head others.");
}

std::int64_t num_differing_pairs(const Mask& a, const Mask& b, std::int64_t length) {
  const auto left = materialize_allow(a, square(length));
  const auto right = materialize_allow(b, square(length));
  std::int64_t differing = 0;
  for (std::size_t i = 0; i < left.elements().size(); ++i) {
    differing += left.elements()[i] != right.elements()[i] ? 1 : 0;
  }
  return differing;
}

void show_identities(Report& report) {
  constexpr std::int64_t kLength = 64;
  constexpr std::array<std::pair<const char*, const char*>, 4> kIdentities{
      {{"longformer(2, 1)", "sliding_window(2, 2) | global_tokens(1)"},
       {"sparse_transformer(4)", "causal & (sliding_window(3, 0) | strided(4))"},
       {"streaming(2, 4)", "causal & (sliding_window(3, 0) | global_tokens(2))"},
       {"bigbird(2, 3, 1, 1, 0)",
        "block_window(1, 1, 2) | global_tokens(2) | random_blocks(1, 2, 0)"}}};
  report.paragraph("The published patterns are combinations of the others. At T = {}:", kLength);
  report.say();
  auto rows = nlohmann::json::array();
  for (const auto& [name, parts] : kIdentities) {
    const std::int64_t differing =
        num_differing_pairs(parse_mask(name), parse_mask(parts), kLength);
    report.say("  {}", name);
    report.say("    = {}", parts);
    report.say("      differing pairs: {}", differing);
    rows.push_back({{"name", name}, {"parts", parts}, {"differing", differing}});
  }
  report.record("identities", rows);
}

void show_combinations(Report& report) {
  constexpr std::int64_t kLength = 8;
  report.step("Combined by | and &");
  report.paragraph(
      "a | b shows a key that either shows, a & b one that both show, and & binds tighter. With c "
      "= causal, w = sliding_window(2, 0) and g = global_tokens(1):");
  const std::vector<Pattern> combined{
      {"w | g", parse_mask("sliding_window(2, 0) | global_tokens(1)")},
      {"c & (w | g)", parse_mask("causal & (sliding_window(2, 0) | global_tokens(1))")},
      {"c & w | g", parse_mask("causal & sliding_window(2, 0) | global_tokens(1)")}};
  show_side_by_side(report, combined, kLength);
  report.record("combined", drawn(combined, kLength));
  report.say();
  report.paragraph("Without the parentheses the first query sees the future.");
  report.say();
  show_identities(report);
  report.say();
  report.paragraph("A text that is wrong is refused, with a mark where:");
  report.say();
  try {
    parse_mask("causal & sliding_window(2)");
  } catch (const InvalidArgument& error) {
    report.say("{}", error.what());
    report.record("refusal", error.what());
  }
}

// The number of visible pairs at length T, by an equation. T is a multiple of the mask's unit.
struct Cost {
  std::string_view mask;
  std::string_view equation;
  std::int64_t (*pairs)(std::int64_t length);
  bool is_bound = false;  // the equation is an upper bound
};

constexpr std::string_view kWindow = "sliding_window(64, 64)";
constexpr std::string_view kStride = "strided(512)";
constexpr std::array<Cost, 13> kCosts{{
    {"none", "T²", [](std::int64_t t) { return t * t; }},
    {"causal", "T (T + 1) / 2", [](std::int64_t t) { return t * (t + 1) / 2; }},
    {kStride, "T² / s", [](std::int64_t t) { return t * t / 512; }},
    {"columns(512)", "T² / s", [](std::int64_t t) { return t * t / 512; }},
    {"sparse_transformer(512)", "s T − s (s − 1) / 2 + T (T / s − 1) / 2",
     [](std::int64_t t) { return 512 * t - 512 * 511 / 2 + t * (t / 512 - 1) / 2; }},
    {kWindow, "(2w + 1) T − w (w + 1)", [](std::int64_t t) { return 129 * t - 64 * 65; }},
    {"dilated(64, 4)", "(2w + 1) T − s w (w + 1)",
     [](std::int64_t t) { return 129 * t - 4 * 64 * 65; }},
    {"block_window(1, 1, 64)", "3 b T − 2 b²",
     [](std::int64_t t) { return 3 * 64 * t - 2 * 64 * 64; }},
    {"random_blocks(3, 64, 0)", "r b T", [](std::int64_t t) { return 3 * 64 * t; }},
    {"global_tokens(16)", "2 g T − g²", [](std::int64_t t) { return 2 * 16 * t - 16 * 16; }},
    {"longformer(64, 16)", "2 g T − g² + (2w + 1) (T − g) − w (w + 1)",
     [](std::int64_t t) { return 32 * t - 16 * 16 + 129 * (t - 16) - 64 * 65; }},
    {"bigbird(64, 3, 2, 3, 0)", "≤ (w + r + 2g) b T",
     [](std::int64_t t) { return (3 + 3 + 2 * 2) * 64 * t; }, true},
    {"streaming(4, 128)", "(n + w) T − (n + w) (n + w − 1) / 2",
     [](std::int64_t t) { return 132 * t - 132 * 131 / 2; }},
}};

void show_growth(Report& report, std::int64_t length, double of_window, double of_stride) {
  const auto root = std::lround(std::sqrt(static_cast<double>(length)));
  const std::int64_t pairs = count_visible(sparse_transformer(root), square(length));
  const double in_roots = static_cast<double>(pairs) / static_cast<double>(length * root);
  report.record("growth", {{"window", of_window},
                           {"stride", of_stride},
                           {"length", length},
                           {"root", root},
                           {"pairs_at_root", pairs},
                           {"in_roots", in_roots}});
  report.paragraph(
      "What to notice: where the text is 4 times as long, a window shows {:.2f} times as many "
      "pairs "
      "and a fixed stride {:.1f} times, as T² does: it only divides. A stride that grows as √T is "
      "between: sparse_transformer({}) shows {} pairs at T = {}, {:.2f} T √T. `heed bench forward "
      "--mask 'TEXT'` measures the time.",
      of_window, of_stride, root, grouped(pairs), length, in_roots);
}

void show_costs(Report& report) {
  constexpr std::array<std::int64_t, 3> kCounted{1024, 4096, 16384};
  constexpr std::int64_t kLongest = 65536;
  report.step("What it costs: visible pairs");
  for (const Cost& cost : kCosts) report.say("    {:<26} {}", cost.mask, cost.equation);
  report.say();
  report.paragraph(
      "Counted by count_visible() up to T = {}; at {} what the equation says, and of T² then:",
      kCounted.back(), kLongest);
  report.say();
  report.say("  {:<23} {:>9} {:>10} {:>11} {:>13} {:>7}", "T", kCounted[0], kCounted[1],
             kCounted[2], kLongest, "of T²");
  auto rows = nlohmann::json::array();
  double of_window = 0;
  double of_stride = 0;
  for (const Cost& cost : kCosts) {
    std::array<std::int64_t, kCounted.size()> counted{};
    std::array<std::int64_t, kCounted.size()> by_equation{};
    for (std::size_t i = 0; i < kCounted.size(); ++i) {
      counted[i] = count_visible(parse_mask(cost.mask), square(kCounted[i]));
      by_equation[i] = cost.pairs(kCounted[i]);
    }
    const std::int64_t at_longest = cost.pairs(kLongest);
    const double share = share_of_pairs(at_longest, kLongest);
    const double growth = static_cast<double>(counted[2]) / static_cast<double>(counted[1]);
    if (cost.mask == kWindow) of_window = growth;
    if (cost.mask == kStride) of_stride = growth;
    report.say("  {:<23} {:>9} {:>10} {:>11} {:>13} {:>6.2f}%", cost.mask, grouped(counted[0]),
               grouped(counted[1]), grouped(counted[2]),
               (cost.is_bound ? "≤ " : "") + grouped(at_longest), 100 * share);
    rows.push_back({{"mask", cost.mask},
                    {"is_bound", cost.is_bound},
                    {"lengths", kCounted},
                    {"counted", counted},
                    {"by_equation", by_equation},
                    {"longest", kLongest},
                    {"at_longest", at_longest},
                    {"share", share}});
  }
  report.record("costs", rows);
  report.say();
  show_growth(report, kCounted.back(), of_window, of_stride);
}

Figure draw_patterns(Theme theme) {
  const std::vector<Pattern> patterns = small_patterns();
  const auto count = static_cast<std::int64_t>(patterns.size());
  Tensor<bool> visible({count, kSmall, kSmall});
  std::vector<std::string> titles;
  auto out = visible.elements().begin();
  for (const Pattern& pattern : patterns) {
    const auto allowed = materialize_allow(pattern.mask, square(kSmall));
    out = std::copy(allowed.elements().begin(), allowed.elements().end(), out);
    titles.push_back(pattern.name);
  }
  Figure figure = mask_figure(visible, {.title = "Sparse attention: who sees whom",
                                        .query_title = "query position",
                                        .key_title = "key position",
                                        .panels = titles,
                                        .visible_mark = "",
                                        .masked_mark = "",
                                        .theme = theme});
  figure.columns = 4;
  constexpr int kExtent = 9 * static_cast<int>(kSmall);
  for (Panel& panel : figure.panels) panel.width = panel.height = kExtent;
  for (std::size_t i = 1; i < figure.panels.size(); ++i) figure.panels[i].swatches.clear();
  return figure;
}

void teach(Report& report) {
  report.paragraph(
      "Attention compares T² pairs. A sparse mask leaves most of them out: that costs less, and "
      "decides what a position can know of.");
  show_patterns(report);
  show_combinations(report);
  show_costs(report);
  show_reach(report);
  show_gap(report);
  show_selection(report);
  show_equality(report);
  report.draw(draw_patterns);
}

}  // namespace sparse_attention_lesson

extern const Lesson kSparseAttentionLesson = {
    "sparse-attention", "patterns by | and &, pairs, ways through layers, chosen blocks",
    sparse_attention_lesson::teach};

}  // namespace heed::learn
