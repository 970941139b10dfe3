#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "heed/viz/layout.h"
#include "heed/viz/terminal.h"
#include "io/unicode.h"
#include "viz/cells.h"

namespace heed { inline namespace v0 {
namespace {

constexpr int kValueCell = 4;  // " .25"
constexpr int kWideCell = 6;   // " 0.25 "
constexpr int kMaxCell = 12;
constexpr int kUprightHeight = 10;
constexpr int kBarWidth = 12;
constexpr std::string_view kShades = " .:-=+*#%@";

enum class KeyHeader { kAcross, kUpright, kNumbers };

constexpr Rgb kNotANumber{0xff, 0x00, 0xff};  // not a colour of any map
constexpr float kMasked = -std::numeric_limits<float>::infinity();

// The weights to draw: the largest of each block of cells.
struct HeatmapGrid {
  std::int64_t row_block = 1;
  std::int64_t key_block = 1;
  std::vector<std::string> row_labels;
  std::vector<std::string> key_labels;
  std::vector<float> weights;  // row-major; masked cells hold kMasked
};

struct Layout {
  int label_width = 0;
  int cell_width = 1;
  bool has_values = false;
  KeyHeader header = KeyHeader::kAcross;
};

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

void check_labels(const char* what, std::span<const std::string> labels, std::int64_t extent) {
  const auto count = static_cast<std::int64_t>(labels.size());
  if (count == 0 || count == extent) return;
  throw InvalidArgument(
      fmt::format("render_heatmap: {} {} labels were given for {}", count, what, extent));
}

void check(TensorView<const float> weights, const HeatmapLabels& labels,
           const HeatmapOptions& options) {
  if (weights.rank() != 2) {
    throw InvalidArgument(fmt::format("render_heatmap: weights are {}, expected [q_len, kv_len]",
                                      to_string(weights.shape())));
  }
  check_labels("query", labels.queries, weights.extent(0));
  check_labels("key", labels.keys, weights.extent(1));
  if (options.visible.data() != nullptr && options.visible.shape() != weights.shape()) {
    throw InvalidArgument(fmt::format("render_heatmap: visible is {} but weights are {}",
                                      to_string(options.visible.shape()),
                                      to_string(weights.shape())));
  }
  if (!(options.scale_max > 0) || !std::isfinite(options.scale_max)) {
    throw InvalidArgument(fmt::format("render_heatmap: scale_max is {}, expected a positive number",
                                      options.scale_max));
  }
}

// Replaces each character outside ASCII by a question mark.
std::string ascii(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t size = unicode::grapheme_size(text);
    result += size == 1 ? text.front() : '?';
    text.remove_prefix(size);
  }
  return result;
}

// The labels in drawable form, one per block.
std::vector<std::string> drawable(std::span<const std::string> labels, std::int64_t extent,
                                  std::int64_t block, const TerminalStyle& style) {
  std::vector<std::string> result;
  for (std::int64_t i = 0; i < extent; i += block) {
    const std::string label = labels.empty()
                                  ? fmt::format("{}", i)
                                  : sanitize_for_terminal(labels[static_cast<std::size_t>(i)]);
    result.push_back(style.utf8 ? label : ascii(label));
  }
  return result;
}

int widest(const std::vector<std::string>& labels) {
  int width = 0;
  for (const std::string& label : labels) width = std::max(width, unicode::columns(label));
  return width;
}

// The width of the widest character in the labels.
int widest_character(const std::vector<std::string>& labels) {
  int width = 0;
  for (std::string_view rest : labels) {
    while (!rest.empty()) {
      const std::size_t size = unicode::grapheme_size(rest);
      width = std::max(width, unicode::columns(rest.substr(0, size)));
      rest.remove_prefix(size);
    }
  }
  return width;
}

TensorView<const bool> everything(const Shape& shape) {
  static constexpr bool kIsVisible = true;
  return TensorView<const bool>(&kIsVisible, Shape{}).broadcast_to(shape);
}

// The largest visible weight; NaN if there is one, kMasked if nothing is visible.
float largest_visible(TensorView<const float> weights, TensorView<const bool> visible) {
  float largest = kMasked;
  for (std::int64_t i = 0; i < weights.extent(0); ++i) {
    for (std::int64_t j = 0; j < weights.extent(1); ++j) {
      if (!visible(i, j) || std::isnan(largest) || weights(i, j) <= largest) continue;
      largest = weights(i, j);
    }
  }
  return largest;
}

class Heatmap {
 public:
  Heatmap(TensorView<const float> weights, const HeatmapLabels& labels, const TerminalStyle& style,
          const HeatmapOptions& options)
      : style_(style), options_(options) {
    style_.width = std::max(style.width, kMinTerminalWidth);
    const auto all_rows = drawable(labels.queries, weights.extent(0), 1, style_);
    layout_.label_width = std::min(widest(all_rows), style_.width / 4);
    const std::int64_t room = style_.width - layout_.label_width - 1;
    if (weights.extent(1) > room) {
      grid_.key_block = ceil_divide(weights.extent(1), room);
      grid_.row_block = ceil_divide(weights.extent(0), room);
    }
    grid_.row_labels = drawable(labels.queries, weights.extent(0), grid_.row_block, style_);
    grid_.key_labels = drawable(labels.keys, weights.extent(1), grid_.key_block, style_);
    fill(weights,
         options.visible.data() == nullptr ? everything(weights.shape()) : options.visible);
    lay_out(static_cast<int>(room));
  }

  std::string text() const {
    if (grid_.weights.empty()) return "(no weights)\n";
    return header() + rows() + (options_.legend ? legend() : "");
  }

 private:
  void fill(TensorView<const float> weights, TensorView<const bool> visible) {
    for (std::int64_t row = 0; row < weights.extent(0); row += grid_.row_block) {
      const std::int64_t row_end = std::min(row + grid_.row_block, weights.extent(0));
      for (std::int64_t key = 0; key < weights.extent(1); key += grid_.key_block) {
        const std::int64_t key_end = std::min(key + grid_.key_block, weights.extent(1));
        grid_.weights.push_back(
            largest_visible(weights.slice(0, row, row_end).slice(1, key, key_end),
                            visible.slice(0, row, row_end).slice(1, key, key_end)));
      }
    }
  }

  void lay_out(int room) {
    const int share = room / std::max(static_cast<int>(grid_.key_labels.size()), 1);
    const int widest_key = widest(grid_.key_labels);
    layout_.has_values = share >= kValueCell;
    if (share >= kWideCell) {
      layout_.cell_width = std::clamp(widest_key + 1, kWideCell, std::min(share, kMaxCell));
      return;
    }
    layout_.cell_width = layout_.has_values ? kValueCell : std::clamp(share, 1, 2);
    if (widest_key < layout_.cell_width) return;
    layout_.header = widest_character(grid_.key_labels) <= layout_.cell_width ? KeyHeader::kUpright
                                                                              : KeyHeader::kNumbers;
  }

  std::string header() const {
    switch (layout_.header) {
      case KeyHeader::kAcross:
        return across_header();
      case KeyHeader::kUpright:
        return upright_header(grid_.key_labels);
      case KeyHeader::kNumbers:
        break;
    }
    std::vector<std::string> numbers;
    std::string names = "keys:";
    for (std::size_t i = 0; i < grid_.key_labels.size(); ++i) {
      numbers.push_back(fmt::format("{}", static_cast<std::int64_t>(i) * grid_.key_block));
      names += fmt::format(" {}={}", numbers.back(), grid_.key_labels[i]);
    }
    return cells::wrapped(names, style_) + upright_header(numbers);
  }

  std::string across_header() const {
    std::string line(static_cast<std::size_t>(layout_.label_width + 1), ' ');
    for (const std::string& label : grid_.key_labels) {
      line +=
          cells::centered(cells::cut(label, layout_.cell_width - 1, style_), layout_.cell_width);
    }
    return finished(line);
  }

  // Labels written from top to bottom, aligned at the last line.
  std::string upright_header(const std::vector<std::string>& labels) const {
    std::vector<std::vector<std::string>> columns;
    std::size_t height = 0;
    for (std::string_view rest : labels) {
      std::vector<std::string> characters;
      while (!rest.empty() && characters.size() < kUprightHeight) {
        characters.emplace_back(rest.substr(0, unicode::grapheme_size(rest)));
        rest.remove_prefix(characters.back().size());
      }
      if (!rest.empty()) characters.back() = style_.utf8 ? "⋮" : "~";
      height = std::max(height, characters.size());
      columns.push_back(std::move(characters));
    }
    std::string text;
    for (std::size_t line = 0; line < height; ++line) {
      std::string characters(static_cast<std::size_t>(layout_.label_width + 1), ' ');
      for (const auto& column : columns) {
        const std::size_t skipped = height - column.size();
        const std::string character = line < skipped ? "" : column[line - skipped];
        characters += cells::centered(character, layout_.cell_width);
      }
      text += finished(characters);
    }
    return text;
  }

  // Weights are drawn two rows to a line if the terminal supports it, so that they are square.
  bool draws_halves() const {
    return grid_.key_block > 1 && style_.utf8 && style_.depth != ColorDepth::kPlain;
  }

  std::string half_rows() const {
    const std::size_t columns = grid_.key_labels.size();
    std::string text;
    for (std::size_t row = 0; row < grid_.row_labels.size(); row += 2) {
      std::string line = row_label(grid_.row_labels[row]);
      for (std::size_t key = 0; key < columns; ++key) {
        const std::size_t upper = row * columns + key;
        const std::size_t lower = upper + columns;
        line += cells::halves(
            half_color(grid_.weights[upper]),
            lower < grid_.weights.size() ? half_color(grid_.weights[lower]) : std::nullopt,
            style_.depth);
      }
      text += finished(line);
    }
    return text;
  }

  std::optional<Rgb> half_color(float weight) const {
    if (weight == kMasked) return std::nullopt;
    if (std::isnan(weight)) return kNotANumber;
    return colormap(options_.color_map, weight / options_.scale_max);
  }

  std::string row_label(const std::string& label) const {
    return cells::right_aligned(cells::cut(label, layout_.label_width, style_),
                                layout_.label_width) +
           ' ';
  }

  std::string rows() const {
    if (draws_halves()) return half_rows();
    std::string text;
    auto weight = grid_.weights.begin();
    for (const std::string& label : grid_.row_labels) {
      std::string line = row_label(label);
      for (std::size_t key = 0; key < grid_.key_labels.size(); ++key) line += cell(*weight++);
      text += finished(line);
    }
    return text;
  }

  std::string cell(float weight) const {
    const int width = layout_.cell_width;
    if (weight == kMasked) {
      return cells::dimmed(cells::centered(masked_mark(), width), style_.depth);
    }
    if (std::isnan(weight)) return cells::centered(width > 3 ? "nan" : "?", width);
    const float position = weight / options_.scale_max;
    if (layout_.has_values) {
      return cells::painted(cells::centered(cells::number(weight, width - 1), width),
                            colormap(options_.color_map, position), style_.depth);
    }
    const char filling = style_.depth == ColorDepth::kPlain ? shade(position) : ' ';
    return cells::painted(std::string(static_cast<std::size_t>(width), filling),
                          colormap(options_.color_map, position), style_.depth);
  }

  static char shade(float position) {
    const float last = static_cast<float>(kShades.size() - 1);
    const float place = std::clamp(position, 0.0F, 1.0F) * last;
    return kShades[static_cast<std::size_t>(std::lround(place))];
  }

  std::string_view masked_mark() const { return style_.utf8 ? "·" : "x"; }

  std::string legend() const {
    std::string notes = "Row: a query; column: a key; cell: the weight the query gives the key.";
    if (std::find(grid_.weights.begin(), grid_.weights.end(), kMasked) != grid_.weights.end()) {
      notes += fmt::format(" {} marks a key that the query does not see.", masked_mark());
    }
    if (grid_.key_block > 1) {
      notes +=
          fmt::format(" Each cell is the largest of {} by {} weights; its labels name the first.",
                      grid_.row_block, grid_.key_block);
    }
    return scale() + cells::wrapped(notes, style_);
  }

  // The line that explains the colours or characters.
  std::string scale() const {
    const std::string end = cells::number(options_.scale_max, 5);
    if (style_.depth == ColorDepth::kPlain) {
      return layout_.has_values ? "" : fmt::format("0 [{}] {}\n", kShades, end);
    }
    std::string bar;
    for (int i = 0; i < kBarWidth; ++i) {
      const float position = static_cast<float>(i) / (kBarWidth - 1);
      bar += cells::painted(" ", colormap(options_.color_map, position), style_.depth);
    }
    return fmt::format("0 {} {}\n", bar, end);
  }

  static std::string finished(std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    return line + '\n';
  }

  TerminalStyle style_;
  HeatmapOptions options_;
  HeatmapGrid grid_;
  Layout layout_;
};

}  // namespace

std::string render_heatmap(TensorView<const float> weights, const HeatmapLabels& labels,
                           const TerminalStyle& style, const HeatmapOptions& options) {
  check(weights, labels, options);
  return Heatmap(weights, labels, style, options).text();
}

}}  // namespace heed::v0
