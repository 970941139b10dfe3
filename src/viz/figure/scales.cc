#include "viz/figure/scales.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace heed { inline namespace v0 { namespace figure {

namespace {

constexpr std::int64_t kFewCells = 20;  // up to this many cells all have a label
constexpr int kIndexTicks = 8;

std::string superscript(int exponent) {
  constexpr std::array<const char*, 10> kDigits{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = exponent < 0 ? "⁻" : "";
  for (const char digit : fmt::format("{}", std::abs(exponent))) {
    text += kDigits[static_cast<std::size_t>(digit - '0')];
  }
  return text;
}

// Returns the smallest of 1, 2, 5, 10, … that is not below `step`.
double round_step(double step) {
  const double power = std::pow(10.0, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::vector<Tick> linear_ticks(double low, double high, int count) {
  const double step = round_step((high - low) / count);
  const int decimals = std::clamp(static_cast<int>(-std::floor(std::log10(step) + 1e-9)), 0, 12);
  const bool is_plain = std::max(std::abs(low), std::abs(high)) < 1e6 && decimals <= 5;
  std::vector<Tick> ticks;
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9; ++i) {
    const double at = i == 0 ? 0 : i * step;
    ticks.push_back(
        {at, is_plain ? fmt::format("{:.{}f}", at, decimals) : fmt::format("{:g}", at)});
  }
  return ticks;
}

std::vector<Tick> log_ticks(double low, double high, int count) {
  const double decades = std::log10(high / low);
  const int step = std::max(1, static_cast<int>(std::ceil(decades / count)));
  std::vector<Tick> ticks;
  const auto add = [&](double at) {
    if (at >= low * (1 - 1e-9) && at <= high * (1 + 1e-9)) ticks.push_back({at, number(at)});
  };
  const int first = static_cast<int>(std::floor(std::log10(low) + 1e-9));
  for (int exponent = first; exponent <= std::log10(high) + 1e-9; ++exponent) {
    if ((exponent - first) % step == 0) add(std::pow(10.0, exponent));
    if (decades > 2.5) continue;
    add(2 * std::pow(10.0, exponent));
    add(5 * std::pow(10.0, exponent));
  }
  return ticks;
}

}  // namespace

std::string number(double value) {
  const double exponent = value > 0 ? std::log10(value) : 0;
  const bool is_power = std::abs(exponent - std::round(exponent)) < 1e-9;
  if (std::abs(exponent) < 4 - 1e-9) return fmt::format("{:.6g}", value);
  const int whole = static_cast<int>(std::floor(exponent + 1e-9));
  const std::string power = "10" + superscript(whole);
  return is_power ? power : fmt::format("{:.3g}·{}", value / std::pow(10.0, whole), power);
}

Axis number_axis(std::string label, double low, double high, bool is_log, int count) {
  Axis axis{.label = std::move(label), .low = low, .high = high, .is_log = is_log};
  axis.ticks = is_log ? log_ticks(low, high, count) : linear_ticks(low, high, count);
  return axis;
}

namespace {

// Ticks at round numbers, each at the centre of the cell that contains it.
std::vector<Tick> index_ticks(const Categories& categories) {
  const auto first = static_cast<double>(categories.first);
  const auto end = static_cast<double>(categories.first + categories.extent * categories.block);
  std::vector<Tick> ticks;
  for (const Tick& tick : linear_ticks(first, end, kIndexTicks)) {
    if (tick.at >= end || tick.at != std::round(tick.at)) continue;
    const auto cell = (static_cast<std::int64_t>(tick.at) - categories.first) / categories.block;
    ticks.push_back({static_cast<double>(cell) + 0.5, fmt::format("{:.0f}", tick.at)});
  }
  return ticks;
}

}  // namespace

Axis category_axis(std::string label, const Categories& categories, bool is_flipped) {
  Axis axis{.label = std::move(label), .skips_labels = categories.labels.empty()};
  (is_flipped ? axis.low : axis.high) = static_cast<double>(categories.extent);
  if (is_flipped) axis.high = 0;
  if (categories.labels.empty() && categories.extent > kFewCells) {
    axis.ticks = index_ticks(categories);
    return axis;
  }
  for (std::int64_t i = 0; i < categories.extent; ++i) {
    const std::int64_t index = i * categories.block;
    axis.ticks.push_back(
        {static_cast<double>(i) + 0.5, categories.labels.empty()
                                           ? fmt::format("{}", categories.first + index)
                                           : categories.labels[static_cast<std::size_t>(index)]});
  }
  return axis;
}

double place(const Axis& axis, double value) {
  if (axis.is_log) return std::log(value / axis.low) / std::log(axis.high / axis.low);
  return (value - axis.low) / (axis.high - axis.low);
}

namespace {

constexpr float kDecades = 4;
constexpr int kBarColors = 49;

// Not a colour of any map, so that it stands out.
constexpr Rgb kNotANumber{0xff, 0x00, 0xff};

float magnitude(float value) { return std::isnan(value) || value == kMasked ? 0 : std::abs(value); }

// Formats e.g. "0.25"; a number that rounds to 0 has no sign.
std::string text_of(float value, int decimals) {
  if (std::isnan(value)) return "nan";
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text.find_first_of("123456789i") == text.npos && text.front() == '-') text.erase(0, 1);
  return text;
}

// The position in the map of a share of the scale's end; the diverging map has 0 in the middle.
float in_map(ColorMap map, float share) { return map == ColorMap::kRdBu ? (share + 1) / 2 : share; }

// The position of `value` in the colour map, with `end` the end of the scale.
float position(float value, float end, const ColorRange& range) {
  float share = end > 0 ? value / end : 0;
  if (std::isinf(value)) share = std::copysign(1.0F, value);
  if (range.scale == ColorScale::kLog) {
    const float length = std::max(0.0F, 1 + std::log10(std::abs(share)) / kDecades);
    share = share == 0 ? 0 : std::copysign(length, share);
  }
  return in_map(range.map, share);
}

bool ends_dark(ColorMap map) { return luminance(colormap(map, 1)) < luminance(colormap(map, 0)); }

// The colour with the same hue and saturation (HSL) and the opposite lightness.
Rgb with_turned_lightness(Rgb color) {
  const auto [least, most] = std::minmax({color.red, color.green, color.blue});
  const int shift = 255 - least - most;
  const auto turned = [shift](std::uint8_t channel) {
    return static_cast<std::uint8_t>(channel + shift);
  };
  return {turned(color.red), turned(color.green), turned(color.blue)};
}

}  // namespace

Rgb color_at(const ColorRange& range, float position) {
  if (range.theme == Theme::kLight) return colormap(range.map, position);
  if (range.map == ColorMap::kRdBu) return with_turned_lightness(colormap(range.map, position));
  return colormap(range.map, ends_dark(range.map) ? 1 - position : position);
}

bool has_negative(const Grid& grid) {
  return std::any_of(grid.values.begin(), grid.values.end(),
                     [](float value) { return value < 0 && value != kMasked; });
}

float largest_magnitude(const Grid& grid) {
  float largest = 0;
  for (const float value : grid.values) {
    if (std::isfinite(value)) largest = std::max(largest, magnitude(value));
  }
  return largest;
}

Cells color_cells(const Grid& grid, const ColorRange& range, int decimals) {
  Cells cells{.rows = grid.rows, .columns = grid.columns};
  bool is_any_hatched = false;
  for (std::int64_t row = 0; row < grid.rows; ++row) {
    const float* begin = grid.values.data() + row * grid.columns;
    float end = range.max;
    if (range.scale == ColorScale::kPerRow) {
      end = 0;
      for (std::int64_t i = 0; i < grid.columns; ++i) end = std::max(end, magnitude(begin[i]));
    }
    for (std::int64_t i = 0; i < grid.columns; ++i) {
      const float value = begin[i];
      const bool is_masked = value == kMasked;
      is_any_hatched = is_any_hatched || is_masked;
      cells.is_hatched.push_back(is_masked);
      cells.colors.push_back(std::isnan(value)
                                 ? kNotANumber
                                 : color_at(range, is_masked ? 0 : position(value, end, range)));
      if (decimals < 0 || grid.is_pooled()) continue;
      cells.texts.push_back(is_masked ? "" : text_of(value, decimals));
    }
  }
  if (!is_any_hatched) cells.is_hatched.clear();
  return cells;
}

ColorBar color_bar(const ColorRange& range, std::string label) {
  ColorBar bar;
  for (int i = 0; i < kBarColors; ++i) {
    const float share = static_cast<float>(i) / (kBarColors - 1);
    bar.colors.push_back(color_at(range, range.is_signed ? share : in_map(range.map, share)));
  }
  const double max = range.max;
  if (range.scale == ColorScale::kPerRow) {
    bar.axis = number_axis("share of the row's largest", range.is_signed ? -1 : 0, 1, false, 5);
  } else if (range.scale == ColorScale::kLog && !range.is_signed) {
    bar.axis = number_axis(std::move(label), max * std::pow(10.0, -kDecades), max, true, 5);
  } else if (range.scale == ColorScale::kLog) {
    // Four decades on each side; smaller magnitudes are shown as 0.
    bar.axis = {.label = std::move(label), .low = -1, .high = 1};
    for (const double end : {-1.0, 1.0}) {
      bar.axis.ticks.push_back({end, fmt::format("{:.2g}", end * max)});
      bar.axis.ticks.push_back({end / 2, fmt::format("{:.2g}", end * max / 100)});
    }
    bar.axis.ticks.push_back({0, "0"});
  } else {
    bar.axis = number_axis(std::move(label), range.is_signed ? -max : 0, max, false, 5);
  }
  return bar;
}

}}}  // namespace heed::v0::figure
