#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "heed/viz/colormap.h"
#include "heed/viz/layout.h"
#include "sentence_files.h"

namespace heed::cli {

namespace {

constexpr int kGap = 3;
constexpr int kMaxLabel = 12;
constexpr int kSummaryWidth = 38;  // two columns of summaries fill 80 columns
constexpr std::size_t kStrongest = 5;

int widest(const std::vector<std::string>& labels) {
  int width = 0;
  for (const std::string& label : labels) width = std::max(width, terminal_columns(label));
  return width;
}

// Returns the columns that a heatmap needs to show every weight as a number and every label uncut.
int comfortable_width(const inspect::AttendedTokens& attention) {
  const int label = std::min(widest(attention.labels), kMaxLabel);
  const int cell = label < 4 ? 4 : std::max(label + 1, 6);
  return label + 1 + cell * static_cast<int>(attention.num_tokens());
}

// The arrangement of heatmaps: `across` per row, each `width` columns wide.
struct Arrangement {
  int across;
  int width;
};

Arrangement arrange(const inspect::AttendedTokens& attention, int num_heads, int width) {
  const bool is_summary = attention.num_tokens() > kMaxDrawnTokens;
  const int wanted = is_summary ? kSummaryWidth : comfortable_width(attention);
  const int fitting = std::clamp((width + kGap) / (wanted + kGap), 1, num_heads);
  const int rows = (num_heads + fitting - 1) / fitting;
  const int across = (num_heads + rows - 1) / rows;
  return {across, is_summary ? std::min(wanted, width) : (width - kGap * (across - 1)) / across};
}

// Returns the end of the colour scale. With many tokens each weight is small, and a scale up to 1
// would make all colours dark, so the scale ends near the median of the rows' largest weights. It
// does not end so early that uniform weights look strong.
float scale_end(const inspect::AttendedTokens& attention) {
  constexpr std::int64_t kFew = 10;
  const std::int64_t num_tokens = attention.num_tokens();
  if (num_tokens <= kFew) return 1;
  std::vector<float> largest;
  const auto weights = attention.weights.elements();
  for (auto row = weights.begin(); row != weights.end(); row += num_tokens) {
    largest.push_back(*std::max_element(row, row + num_tokens));
  }
  const auto median = largest.begin() + static_cast<std::ptrdiff_t>(largest.size() / 2);
  std::nth_element(largest.begin(), median, largest.end());
  const float least = std::max(*median, least_scale_end(num_tokens));
  for (const float end : {0.01F, 0.02F, 0.05F, 0.1F, 0.2F, 0.5F}) {
    if (least <= end) return end;
  }
  return 1;
}

// Returns the first line of a heatmap's legend, which explains the colours or characters; empty
// where the weights are printed as numbers.
std::string scale_line(const inspect::AttendedTokens& attention, const TerminalStyle& style,
                       HeatmapOptions options) {
  const FloatView weights = attention.weights.view().select(0, 0);
  const HeatmapLabels labels{attention.labels, attention.labels};
  options.legend = false;
  const std::size_t legend = render_heatmap(weights, labels, style, options).size();
  options.legend = true;
  const std::string text = render_heatmap(weights, labels, style, options).substr(legend);
  if (text.rfind("0 ", 0) != 0) return "";
  return (options.scale_max < 1 ? "\nweight " : "\n") + text.substr(0, text.find('\n')) +
         (options.scale_max < 1 ? " and more\n" : "\n");
}

// Returns for example "its last token, mat, attends most to: cat 0.31, The 0.22".
std::string strongest(const inspect::AttendedTokens& attention, std::int64_t head) {
  const std::int64_t last = attention.num_tokens() - 1;
  const auto weights = attention.weights.view().select(0, head).select(0, last).elements();
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), 0);
  const std::size_t shown = std::min(kStrongest, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
                    [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
  std::string text =
      fmt::format("Head {}: the last token, {}, attends most to", head, attention.labels.back());
  for (std::size_t i = 0; i < shown; ++i) {
    text += fmt::format("{} {} ({}) {:.3f}", i == 0 ? "" : ",", attention.labels[order[i]],
                        order[i], weights[order[i]]);
  }
  return text + '.';
}

std::string summary(const inspect::AttendedTokens& attention,
                    const std::vector<std::int64_t>& heads, const TerminalStyle& style) {
  std::string text =
      '\n' +
      wrap_text(
          fmt::format("{} tokens are more than fit: each cell stands for a block of neighbouring "
                      "weights and shows the largest.",
                      attention.num_tokens()),
          style.width);
  text += '\n';
  for (const std::int64_t head : heads) text += wrap_text(strongest(attention, head), style.width);
  return text;
}

}  // namespace

std::string draw_tokens(const inspect::AttendedTokens& attention, const TerminalStyle& style) {
  std::vector<std::string> rows;
  std::vector<std::string> columns;
  int used = 0;
  const auto finish_row = [&] {
    rows.push_back(side_by_side(columns, 2));
    columns.clear();
    used = 0;
  };
  for (std::size_t i = 0; i < attention.labels.size(); ++i) {
    const std::string id = fmt::format("{}", attention.token_ids[i]);
    const int width = std::max(terminal_columns(attention.labels[i]), terminal_columns(id)) + 2;
    if (!columns.empty() && used + width > style.width) finish_row();
    columns.push_back(attention.labels[i] + '\n' + id + '\n');
    used += width;
  }
  finish_row();
  return fmt::format("{}", fmt::join(rows, "\n"));
}

std::string draw_heads(const inspect::AttendedTokens& attention,
                       const std::vector<std::int64_t>& heads, const TerminalStyle& style) {
  const auto [across, width] = arrange(attention, static_cast<int>(heads.size()), style.width);
  TerminalStyle panel = style;
  panel.width = width;
  const HeatmapOptions options{
      .visible = attention.visible, .scale_max = scale_end(attention), .legend = false};
  std::string text;
  std::vector<std::string> row;
  for (const std::int64_t head : heads) {
    row.push_back(fmt::format("Head {}\n", head) +
                  render_heatmap(attention.weights.view().select(0, head),
                                 {attention.labels, attention.labels}, panel, options));
    if (static_cast<int>(row.size()) < across && head != heads.back()) continue;
    text += (text.empty() ? "" : "\n") + side_by_side(row, kGap);
    row.clear();
  }
  text += scale_line(attention, panel, options);
  const bool is_summary = attention.num_tokens() > kMaxDrawnTokens;
  return is_summary ? text + summary(attention, heads, style) : text;
}

std::vector<std::int64_t> all_heads(const inspect::AttendedTokens& attention) {
  std::vector<std::int64_t> heads(static_cast<std::size_t>(attention.num_heads()));
  std::iota(heads.begin(), heads.end(), 0);
  return heads;
}

}  // namespace heed::cli
