#include "viz/figure/color_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "viz/figure/axis.h"

namespace heed { inline namespace v0 { namespace figure {
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
